// Kernelmodel writes a table of how many cycles a value the loops of the main kernels take on processors that are not
// at hand, as the throughput model llvm-mca predicts it. The model knows the processor's operations, ports and
// latencies, and takes all bytes to be in the first-level cache. docs/performance-kernels.md has
// the table.
//
//	cd tools && go run ./kernelmodel
//	cd tools && go run ./kernelmodel -arch arm64
//
// The table of arm64 has the loops of plain Go beside those of NEON, since both are modelled only.
//
// It needs llvm-mca and llvm-objdump: `apt install llvm-19`, or a later version. It takes the newest in PATH.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// kernel is a function of which a loop is modelled, the first one unless others are skipped.
type kernel struct {
	row    string // of the table
	unit   string // folder under fpga/unit
	name   string // as the linker has it, with the package's path where that is another one
	level  string
	values int64 // that a turn of the loop takes, if its first instruction does not say so
	skip   int   // loops that end before it and are not modelled
}

// architecture says how the kernels of an architecture are modelled.
type architecture struct {
	triple     string
	features   string // that llvm-mca does not take a processor of the architecture to have
	processors string // unless others are asked for
	kernels    []kernel
	comment    string         // what begins one in a listing
	jump       *regexp.Regexp // a jump to an address
	comparison *regexp.Regexp // of the values that are left with those of a turn, which begins loops; or nil
}

var architectures = map[string]architecture{
	"amd64": {"x86_64", "", "sapphirerapids,znver4,znver5", amd64Kernels, " #",
		regexp.MustCompile(`^j[a-z]+\s+0x([0-9a-f]+)`), regexp.MustCompile(`^cmpq\s+\$0x([0-9a-f]+),`)},
	"arm64": {"aarch64", "+aes", "neoverse-n1,neoverse-v2", arm64Kernels, " //",
		regexp.MustCompile(`^(?:b|b\.[a-z]+|cbn?z\s+\w+,|tbn?z\s+\w+, #\w+,)\s+0x([0-9a-f]+)`), nil},
}

var amd64Kernels = []kernel{
	{"`sigrid_hash`, max 500,000", "sigridhash", "hashWide512.abi0", "AVX-512, products", 0, 0},
	{"", "sigridhash", "hashShiftsWide512.abi0", "AVX-512, shifts", 0, 0},
	{"", "sigridhash", "hashWide256.abi0", "AVX2", 0, 0},
	{"to int32", "sigridhash", "hashWideTo32x512.abi0", "AVX-512, products", 0, 0},
	{"", "sigridhash", "hashShiftsWideTo32x512.abi0", "AVX-512, shifts", 0, 0},
	{"max below 2^14", "sigridhash", "hashSmall512.abi0", "AVX-512, products", 0, 0},
	{"", "sigridhash", "hashShiftsSmall512.abi0", "AVX-512, shifts", 0, 0},
	{"`positive_modulus`, wide", "positivemodulus", "modWide512.abi0", "AVX-512", 0, 0},
	{"`log`", "logn", "log512.abi0", "AVX-512", 0, 0},
	{"", "logn", "log256.abi0", "AVX2", 0, 0},
	{"`bucketize`, float32, every step once", "bucketize", "bucketFloat32x512.abi0", "AVX-512", 0, 0},
	{"", "bucketize", "bucketFloat32x256.abi0", "AVX2", 0, 0},
	{"`clamp`, int64", "clamp", "clampInt64x512.abi0", "AVX-512", 0, 0},
	{"`clamp`, float32", "clamp", "clampFloat32x512.abi0", "AVX-512", 0, 0},
	{"`fill_null`, int64", "fillnull", "fill64x512.abi0", "AVX-512", 0, 0},
	{"`fill_null`, float32", "fillnull", "fill32x512.abi0", "AVX-512", 0, 0},
	{"unpacking, up to 16 bits", "encoding", "unpackNarrow512.abi0", "AVX-512", 0, 0},
}

var arm64Kernels = []kernel{
	{"`sigrid_hash`, max 500,000", "sigridhash", "hashGeneric", "plain Go", 1, 0},
	{"", "sigridhash", "hashWideNEON.abi0", "NEON", 14, 0},
	{"to int32", "sigridhash", "hashWideTo32NEON.abi0", "NEON", 14, 0},
	{"max below 2^14, to int32", "sigridhash", "hashSmallTo32NEON.abi0", "NEON", 14, 0},
	{"`positive_modulus`, no power of two", "positivemodulus", "modGeneric", "plain Go", 1, 0},
	{"wide", "positivemodulus", "modWideNEON.abi0", "NEON", 8, 0},
	{"small", "positivemodulus", "modSmallNEON.abi0", "NEON", 8, 0},
	{"`log`", "logn", "log4NEON.abi0", "NEON", 4, 0},
	{"`bucketize`, float32, every step once", "bucketize", "bucketFloat32NEON.abi0", "NEON", 4, 1},
	{"`clamp`, int64", "clamp", "clampGeneric[int64]", "plain Go", 1, 0},
	{"", "clamp", "clampInt64NEON.abi0", "NEON", 8, 0},
	{"`clamp`, float32", "clamp", "clampFloat32NEON.abi0", "NEON", 16, 0},
	{"`fill_null`, int64", "fillnull", "fillGeneric[uint64]", "plain Go", 1, 0},
	{"", "fillnull", "fill64xNEON.abi0", "NEON", 8, 0},
	{"`fill_null`, float32", "fillnull", "fill32xNEON.abi0", "NEON", 16, 0},
	{"rows of dense, 16 columns", "rowmajor", "writeGeneric", "plain Go", 1, 3},
	{"rows of dense", "rowmajor", "rowsNEON.abi0", "NEON", 16, 0},
	{"rows of dense, bfloat16", "rowmajor", "rowsBFloatNEON.abi0", "NEON", 16, 0},
	{"checksum, a byte", "checksum", "hash/crc32.ieeeUpdate.abi0", "hash/crc32", 16, 0},
	{"", "checksum", "foldNEON.abi0", "NEON", 128, 0},
	{"unpacking, 9 to 16 bits", "encoding", "unpackByTwo", "plain Go", 8, 0},
	{"17 to 32 bits", "encoding", "unpackByEight", "plain Go", 1, 0},
	{"up to 25 bits", "encoding", "unpackNarrowNEON.abi0", "NEON", 8, 0},
	{"26 to 32 bits", "encoding", "unpackWideNEON.abi0", "NEON", 8, 0},
	{"to int64, up to 57 bits", "encoding", "unpackWidestNEON.abi0", "NEON", 8, 0},
	{"dictionary, int64", "encoding", "gatherGeneric[uint64]", "plain Go", 1, 0},
	{"", "encoding", "gather64NEON.abi0", "NEON", 8, 0},
	{"split bytes of 4", "encoding", "join4Generic", "plain Go", 1, 0},
	{"", "encoding", "join4NEON.abi0", "NEON", 16, 0},
	{"split bytes of 8", "encoding", "join8NEON.abi0", "NEON", 16, 0},
}

func main() {
	arch := flag.String("arch", "amd64", "architecture: amd64 or arm64")
	processors := flag.String("mcpu", "", "processors, as llvm-mca names them (default: some of the architecture)")
	flag.Parse()
	if err := run(context.Background(), *arch, *processors); err != nil {
		fmt.Fprintln(os.Stderr, "kernelmodel:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arch, names string) error {
	a, ok := architectures[arch]
	if !ok {
		return fmt.Errorf("no kernels are listed for %q: amd64 or arm64", arch)
	}
	if names == "" {
		names = a.processors
	}
	processors := strings.Split(names, ",")
	suffix, err := newestLLVM()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "kernelmodel")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	fmt.Printf("| cycles a value, modelled | path | %s |\n", strings.Join(processors, " | "))
	fmt.Printf("|---|---|%s\n", strings.Repeat("---|", len(processors)))
	for _, k := range a.kernels {
		binary, err := build(ctx, work, arch, k.unit)
		if err != nil {
			return err
		}
		symbol := k.name
		if !strings.Contains(symbol, "/") {
			symbol = "github.com/millrace/millrace/fpga/unit/" + k.unit + "." + symbol
		}
		listing, err := output(ctx, nil, "llvm-objdump"+suffix, "-d", "--no-show-raw-insn",
			"--disassemble-symbols="+symbol, binary)
		if err != nil {
			return err
		}
		body, values, err := a.loop(string(listing), k)
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		fmt.Printf("| %s | %s |", k.row, k.level)
		for _, p := range processors {
			cycles, err := a.model(ctx, suffix, p, body)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", k.name, p, err)
			}
			fmt.Printf(" %.2f |", cycles/float64(values))
		}
		fmt.Println()
	}
	return nil
}

// newestLLVM returns what the names of the newest version's programs end in.
func newestLLVM() (suffix string, err error) {
	const oldest, newest = 14, 99
	for version := newest; version >= oldest; version-- {
		suffix = "-" + strconv.Itoa(version)
		if _, err := exec.LookPath("llvm-mca" + suffix); err == nil {
			return suffix, nil
		}
	}
	if _, err := exec.LookPath("llvm-mca"); err != nil {
		return "", errors.New("no llvm-mca in PATH: apt install llvm-19")
	}
	return "", nil
}

// build returns a program that holds the kernels of a unit: its tests.
func build(ctx context.Context, work, arch, unit string) (binary string, err error) {
	binary = filepath.Join(work, unit)
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	_, err = output(ctx, nil, "env", "GOARCH="+arch, "go", "-C", "..", "test", "-c", "-o", binary,
		"./"+path.Join("fpga/unit", unit))
	return binary, err
}

func output(ctx context.Context, in []byte, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = bytes.NewReader(in)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, said.Bytes())
	}
	return out, nil
}

var instruction = regexp.MustCompile(`^\s*([0-9a-f]+):\s+(.*)$`)

// loop returns the instructions of a kernel's loop over values, and their number. Where that is not known, it is the
// first loop, which takes the most values at a time and begins with its comparison with the number that is left. Loops
// inside it, which do not begin so, and branches inside it are modelled as if each ran once.
func (a architecture) loop(listing string, k kernel) (body string, values int64, err error) {
	skip := k.skip
	var addresses []uint64
	var lines []string
	for line := range strings.Lines(listing) {
		m := instruction.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			continue
		}
		address, err := strconv.ParseUint(m[1], 16, 64)
		if err != nil {
			return "", 0, err
		}
		text, _, _ := strings.Cut(m[2], a.comment)
		text, _, _ = strings.Cut(text, " <")
		j := a.jump.FindStringSubmatch(text)
		if j != nil { // llvm-mca wants a target in reach
			text = strings.TrimSuffix(strings.TrimSpace(text), "0x"+j[1]) + "."
		}
		addresses, lines = append(addresses, address), append(lines, strings.TrimSpace(text))
		if j == nil {
			continue
		}
		target, err := strconv.ParseUint(j[1], 16, 64)
		if err != nil {
			return "", 0, err
		}
		for i, from := range addresses {
			if from != target {
				continue
			}
			if k.values > 0 {
				if skip > 0 {
					skip--
					break
				}
				return strings.Join(lines[i:], "\n") + "\n", k.values, nil
			}
			count := a.comparison.FindStringSubmatch(lines[i])
			if count == nil {
				break
			}
			values, err := strconv.ParseInt(count[1], 16, 64)
			return strings.Join(lines[i:], "\n") + "\n", values, err
		}
	}
	return "", 0, errors.New("no loop found; does llvm-objdump know this function?")
}

var total = regexp.MustCompile(`(?m)^Total Cycles:\s+(\d+)$`)

// model returns the cycles of one turn of a loop.
func (a architecture) model(ctx context.Context, suffix, processor, body string) (cycles float64, err error) {
	const turns = 500
	out, err := output(ctx, []byte(body), "llvm-mca"+suffix, "-mtriple="+a.triple, "-mattr="+a.features,
		"-mcpu="+processor, "-iterations="+strconv.Itoa(turns), "--instruction-info=false", "--resource-pressure=false")
	if err != nil {
		return 0, err
	}
	m := total.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("llvm-mca printed no total:\n%s", out)
	}
	cycles, err = strconv.ParseFloat(string(m[1]), 64)
	return cycles / turns, err
}
