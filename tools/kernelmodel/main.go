// Kernelmodel writes a table of how many cycles a value the loops of the main kernels take on processors that are not
// at hand, as the throughput model llvm-mca predicts it. The model knows the processor's operations, ports and
// latencies, and takes all bytes to be in the first-level cache. docs/performance.md has the table.
//
//	cd tools && go run ./kernelmodel
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

// kernel is an assembly function whose first loop is modelled.
type kernel struct {
	row   string // of the table
	unit  string // folder under fpga/unit
	name  string
	level string
}

var kernels = []kernel{
	{"`sigrid_hash`, max 500,000", "sigridhash", "hashWide512", "AVX-512, products"},
	{"", "sigridhash", "hashShiftsWide512", "AVX-512, shifts"},
	{"", "sigridhash", "hashWide256", "AVX2"},
	{"to int32", "sigridhash", "hashWideTo32x512", "AVX-512, products"},
	{"", "sigridhash", "hashShiftsWideTo32x512", "AVX-512, shifts"},
	{"max below 2^14", "sigridhash", "hashSmall512", "AVX-512, products"},
	{"", "sigridhash", "hashShiftsSmall512", "AVX-512, shifts"},
	{"`positive_modulus`, wide", "positivemodulus", "modWide512", "AVX-512"},
	{"`log`", "logn", "log512", "AVX-512"},
	{"", "logn", "log256", "AVX2"},
	{"`bucketize`, float32, every step once", "bucketize", "bucketFloat32x512", "AVX-512"},
	{"", "bucketize", "bucketFloat32x256", "AVX2"},
	{"`clamp`, int64", "clamp", "clampInt64x512", "AVX-512"},
	{"`clamp`, float32", "clamp", "clampFloat32x512", "AVX-512"},
	{"`fill_null`, int64", "fillnull", "fill64x512", "AVX-512"},
	{"`fill_null`, float32", "fillnull", "fill32x512", "AVX-512"},
	{"unpacking, up to 16 bits", "encoding", "unpackNarrow512", "AVX-512"},
}

func main() {
	processors := flag.String("mcpu", "sapphirerapids,znver4,znver5", "processors, as llvm-mca names them")
	flag.Parse()
	if err := run(context.Background(), strings.Split(*processors, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "kernelmodel:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, processors []string) error {
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
	for _, k := range kernels {
		binary, err := build(ctx, work, k.unit)
		if err != nil {
			return err
		}
		symbol := "github.com/millrace/millrace/fpga/unit/" + k.unit + "." + k.name + ".abi0"
		listing, err := output(ctx, nil, "llvm-objdump"+suffix, "-d", "--no-show-raw-insn",
			"--disassemble-symbols="+symbol, binary)
		if err != nil {
			return err
		}
		body, values, err := firstLoop(string(listing))
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		fmt.Printf("| %s | %s |", k.row, k.level)
		for _, p := range processors {
			cycles, err := model(ctx, suffix, p, body)
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
func build(ctx context.Context, work, unit string) (binary string, err error) {
	binary = filepath.Join(work, unit)
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	_, err = output(ctx, nil, "go", "-C", "..", "test", "-c", "-o", binary, "./"+path.Join("fpga/unit", unit))
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

var (
	instruction = regexp.MustCompile(`^\s*([0-9a-f]+):\s+(.*)$`)
	jump        = regexp.MustCompile(`^j[a-z]+\s+0x([0-9a-f]+)`)
	comparison  = regexp.MustCompile(`^cmpq\s+\$0x([0-9a-f]+),`)
)

// firstLoop returns the instructions of a function's first loop over values, which takes the most of them at a time,
// and their number: the loop begins with its comparison with the number that is left. Loops inside it, which do not
// begin so, and branches inside it are modelled as if each ran once.
func firstLoop(listing string) (body string, values int64, err error) {
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
		text, _, _ := strings.Cut(m[2], " #")
		text, _, _ = strings.Cut(text, " <")
		addresses, lines = append(addresses, address), append(lines, strings.TrimSpace(text))
		j := jump.FindStringSubmatch(text)
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
			count := comparison.FindStringSubmatch(lines[i])
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
func model(ctx context.Context, suffix, processor, body string) (cycles float64, err error) {
	const turns = 500
	out, err := output(ctx, []byte(body), "llvm-mca"+suffix, "-mtriple=x86_64", "-mcpu="+processor,
		"-iterations="+strconv.Itoa(turns), "--instruction-info=false", "--resource-pressure=false")
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
