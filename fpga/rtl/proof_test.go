package rtl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/shared"
)

// toolchain returns the paths of programs. Without one of them it skips the test, or fails it if they are required.
func toolchain(t *testing.T, names ...string) []string {
	t.Helper()
	paths := make([]string, len(names))
	for i, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			shared.MissingSimulator(t, fmt.Errorf("install yosys and z3: %w", err))
		}
		paths[i] = path
	}
	return paths
}

// onlyWhole skips a test that computes for a minute or more, unless `make rtl` runs it.
func onlyWhole(t *testing.T) {
	t.Helper()
	if os.Getenv("MILLRACE_RTL_WHOLE") != "1" {
		t.Skip("`make rtl` runs this test (MILLRACE_RTL_WHOLE=1)")
	}
}

// sourceFolder writes sources, changed by an edit, into a folder.
func sourceFolder(t *testing.T, edit func(name, text string) string, names ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range names {
		text, err := os.ReadFile(filepath.FromSlash(name)) // the test's folder also holds what is not a source of a unit
		require.NoError(t, err)
		path := filepath.Join(folder, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(edit(name, string(text))), 0o600))
	}
	return folder
}

func unchanged(_, text string) string { return text }

const (
	pipeSource  = "common/stream_credit_pipe.sv"
	queueSource = "common/byte_queue.sv"
	listsSource = "decode/list_lengths.sv"
	linesSource = "decode/text_decoder.sv"

	gatherSource = "decode/dictionary_gather.sv"
	packerSource = "transform/row_packer.sv"
	vocabSource  = "transform/vocabulary.sv"
	spreadSource = "decode/value_spread.sv"

	listsRegisters  = "generated/list_lengths_registers.sv"
	gatherRegisters = "generated/dictionary_gather_registers.sv"
	packerRegisters = "generated/row_packer_registers.sv"
	vocabRegisters  = "generated/vocabulary_registers.sv"
	delaySource     = "common/delay_line.sv"
	numbersSource   = "decode/text_numbers.sv"
	endsSource      = "decode/text_lines.sv"
	linesRegisters  = "generated/text_decoder_registers.sv"
)

// runIn runs a program in a folder and returns all that it printed.
func runIn(t *testing.T, folder, program string, arguments ...string) (string, error) {
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Dir = folder
	output, err := command.CombinedOutput()
	return string(output), err
}

// provePipe returns what is wrong with the elastic wrapper in a folder, for a datapath of a latency: "" if the base
// case and the induction step hold for its assertions and its covers are reached.
func provePipe(t *testing.T, folder string, latency int) string {
	tools := toolchain(t, "yosys", "yosys-smtbmc", "z3")
	const model = "pipe.smt2"
	script := fmt.Sprintf("read_verilog -sv -formal -D FORMAL %s; chparam -set Latency %d -set Width 4 "+
		"stream_credit_pipe; prep -top stream_credit_pipe -flatten; memory_map; opt -full; async2sync; dffunmap; "+
		"write_smt2 -wires %s", pipeSource, latency, model)
	modes := [][]string{{"-t", "3"}, {"-i", "-t", "2"}, {"-c", "-t", "30"}}
	return cachedProof(t, tools, folder, fmt.Sprint(script, modes), func() (string, bool) {
		output, err := runIn(t, folder, tools[0], "-q", "-p", script)
		require.NoError(t, err, output)
		for _, mode := range modes {
			output, err := runIn(t, folder, tools[1], append(append([]string{"--noprogress", "-s", "z3"}, mode...), model)...)
			if err != nil || !strings.Contains(output, "PASSED") {
				return fmt.Sprintf("smtbmc %s: %s", strings.Join(mode, " "), output), strings.Contains(output, "FAILED")
			}
		}
		return "", true
	})
}

// proveQueue returns what is wrong with the queue of bytes in a folder, for beats of some bytes; see solve.
func proveQueue(t *testing.T, folder string, beatBytes int, falsify bool) string {
	return solve(t, folder, fmt.Sprintf("read_verilog -sv -formal -D FORMAL %s; chparam -set BeatBytes %d -set Beats 4 "+
		"byte_queue; prep -top byte_queue -flatten; memory_map; opt -full; async2sync; dffunmap", queueSource, beatBytes),
		falsify)
}

// proveLists returns what is wrong with the sections of unit list_lengths in a folder; see solve. The proof leaves out
// what the results hold, and the elastic wrapper has a proof of its own.
func proveLists(t *testing.T, folder string, falsify bool) string {
	return solve(t, folder, fmt.Sprintf("read_verilog -sv %s %s; read_verilog -sv -formal -D FORMAL %s; "+
		"prep -top list_lengths -flatten; delete -output list_lengths/out_data_o; memory_map; opt -full; async2sync; "+
		"dffunmap; simplemap t:$dff; opt_clean -purge", listsRegisters, pipeSource, listsSource), falsify)
}

// proveLines returns what is wrong with the sections of unit text_decoder in a folder; see solve. The proof leaves out
// what the results hold, and the elastic wrapper has a proof of its own.
func proveLines(t *testing.T, folder string, falsify bool) string {
	return solve(t, folder, fmt.Sprintf("read_verilog -sv %s %s %s %s %s; read_verilog -sv -formal -D FORMAL %s; "+
		"prep -top text_decoder -flatten; delete -output text_decoder/out_data_o; opt_clean -purge; memory_map; opt -full; "+
		"async2sync; dffunmap; simplemap t:$dff; opt_clean -purge", linesRegisters, pipeSource, delaySource, numbersSource,
		endsSource, linesSource), falsify)
}

// proveGather returns what is wrong with the halves of unit dictionary_gather in a folder; see solve. The proof leaves
// out what the results hold.
func proveGather(t *testing.T, folder string, falsify bool) string {
	return solveSmall(t, folder, "dictionary_gather", "IndexWidth 2", gatherSource, gatherRegisters, falsify)
}

// provePacker returns what is wrong with the tiles of unit row_packer in a folder, for tiles of up to two rows; see
// solve.
func provePacker(t *testing.T, folder string, falsify bool) string {
	return solveSmall(t, folder, "row_packer", "RowWidth 1", packerSource, packerRegisters, falsify)
}

// proveVocabulary returns what is wrong with the indices of unit vocabulary in a folder, for four keys; see solve.
func proveVocabulary(t *testing.T, folder string, falsify bool) string {
	return solveSmall(t, folder, "vocabulary", "KeyWidth 2", vocabSource, vocabRegisters, falsify)
}

// proveSpread returns what is wrong with the spreading of values in a folder, for a memory of two words; see solve.
func proveSpread(t *testing.T, folder string, falsify bool) string {
	return solve(t, folder, fmt.Sprintf("read_verilog -sv -formal -D FORMAL -defer %s; hierarchy -top value_spread "+
		"-chparam PresenceWords 2; prep -flatten; memory_map; opt -full; async2sync; dffunmap; simplemap t:$dff t:$mux; "+
		"opt_clean -purge; opt -full", spreadSource), falsify)
}

// solveSmall is solve of a unit with memories, of which a parameter makes small ones. What leaves is not looked at,
// since the elastic wrapper has a proof of its own.
func solveSmall(t *testing.T, folder, unit, parameter, source, registers string, falsify bool) string {
	return solve(t, folder, fmt.Sprintf("read_verilog -sv %s %s; read_verilog -sv -formal -D FORMAL -defer %s; "+
		"hierarchy -top %s -chparam %s; prep -flatten; delete -output %s/out_data_o; opt_clean -purge; memory_map; "+
		"opt -full; async2sync; dffunmap; simplemap t:$dff t:$mux; opt_clean -purge; opt -full", registers, pipeSource,
		source, unit, parameter, unit), falsify)
}

// solve returns what is wrong with a model that Yosys prepares in a folder: "" if the base case and the induction step
// hold for its assertions. It uses the solver within Yosys, since z3 takes minutes for these models. With falsify it
// returns "" if an assertion fails within 20 cycles.
func solve(t *testing.T, folder, prepare string, falsify bool) string {
	goal := "-verify -tempinduct -maxsteps 3"
	if falsify {
		goal = "-falsify -tempinduct-baseonly -tempinduct -maxsteps 20"
	}
	return solveFor(t, folder, prepare, goal)
}

// solveFor is solve for a goal, in options of Yosys's solver.
func solveFor(t *testing.T, folder, prepare, goal string) string {
	tools := toolchain(t, "yosys")
	script := prepare + "; chformal -cover -remove; sat -prove-asserts -set-assumes " + goal
	return cachedProof(t, tools, folder, script, func() (string, bool) {
		output, err := runIn(t, folder, tools[0], "-q", "-p", script)
		if err != nil {
			return output + err.Error(), strings.Contains(output, "proof did fail")
		}
		return "", true
	})
}

// TestElasticWrapperIsProven proves by induction that the wrapper loses, doubles and reorders no value, for FIFOs of 4
// and of 8 places.
func TestElasticWrapperIsProven(t *testing.T) {
	toolchain(t, "yosys", "yosys-smtbmc", "z3")
	folder := sourceFolder(t, unchanged, pipeSource)
	for _, latency := range []int{1, 2, 3} {
		require.Empty(t, provePipe(t, folder, latency), "latency %d", latency)
	}
}

// TestByteQueueIsProven proves by induction that the queue loses, doubles and reorders no byte of a section, for beats
// of 2 and of 4 bytes.
func TestByteQueueIsProven(t *testing.T) {
	toolchain(t, "yosys")
	folder := sourceFolder(t, unchanged, queueSource)
	for _, beatBytes := range []int{2, 4} {
		require.Empty(t, proveQueue(t, folder, beatBytes, false), "beats of %d bytes", beatBytes)
	}
	requireCovers(t, 2, func(folder string) string { return proveQueue(t, folder, 2, true) }, queueSource)
}

// coverAssertion names the assertion that a cover becomes.
const coverAssertion = "reached"

// requireCovers checks that each cover of the first source is reached: as an assertion, its opposite must fail. The
// assertion is named coverAssertion.
func requireCovers(t *testing.T, n int, falsify func(folder string) string, sources ...string) {
	t.Helper()
	source, err := os.ReadFile(filepath.FromSlash(sources[0]))
	require.NoError(t, err)
	covers := regexp.MustCompile(`cover \((.*)\);`).FindAllStringSubmatch(string(source), -1)
	require.Len(t, covers, n)
	for _, cover := range covers {
		folder := sourceFolder(t, func(_, text string) string {
			return strings.Replace(text, cover[0], fmt.Sprintf("%s: assert (!(%s));", coverAssertion, cover[1]), 1)
		}, sources...)
		require.Empty(t, falsify(folder), cover[1])
	}
}

// TestListSectionsAreProven proves by induction that unit list_lengths gives its pipeline every transfer and one cycle
// more for each section, and marks the results of these cycles.
func TestListSectionsAreProven(t *testing.T) {
	toolchain(t, "yosys")
	sources := []string{listsSource, listsRegisters, pipeSource}
	require.Empty(t, proveLists(t, sourceFolder(t, unchanged, sources...), false))
	requireCovers(t, 1, func(folder string) string { return proveLists(t, folder, true) }, sources...)
}

// TestTextSectionsAreProven proves by induction that unit text_decoder gives its pipeline every transfer and, behind a
// section whose last transfer is full, one cycle more, and marks one result of each section.
func TestTextSectionsAreProven(t *testing.T) {
	toolchain(t, "yosys")
	sources := []string{linesSource, linesRegisters, pipeSource, delaySource, numbersSource, endsSource}
	require.Empty(t, proveLines(t, sourceFolder(t, unchanged, sources...), false))
	requireCovers(t, 1, func(folder string) string { return proveLines(t, folder, true) }, sources...)
}

// TestGatherHalvesAreProven proves by induction that unit dictionary_gather gives its pipeline both halves of every
// transfer that has two, and marks the last result of each section.
func TestGatherHalvesAreProven(t *testing.T) {
	toolchain(t, "yosys")
	sources := []string{gatherSource, gatherRegisters, pipeSource}
	require.Empty(t, proveGather(t, sourceFolder(t, unchanged, sources...), false))
	requireCovers(t, 1, func(folder string) string { return proveGather(t, folder, true) }, sources...)
}

// TestPackedTilesAreProven proves by induction that unit row_packer loses, doubles and reorders no tile, row or value,
// for tiles of one row and of two, whose first two columns the proof looks at.
func TestPackedTilesAreProven(t *testing.T) {
	toolchain(t, "yosys")
	sources := []string{packerSource, packerRegisters, pipeSource}
	require.Empty(t, provePacker(t, sourceFolder(t, unchanged, sources...), false))
	requireCovers(t, 1, func(folder string) string { return provePacker(t, folder, true) }, sources...)
}

// TestSpreadValuesAreProven proves by induction that value_spread loses, doubles and reorders no value of a section,
// puts none into a row that is null, and says of every section whether it is damaged; and that sections end in each
// way.
func TestSpreadValuesAreProven(t *testing.T) {
	toolchain(t, "yosys")
	require.Empty(t, proveSpread(t, sourceFolder(t, unchanged, spreadSource), false))
	requireCovers(t, 3, func(folder string) string { return proveSpread(t, folder, true) }, spreadSource)
}

// TestVocabulariesAreProven proves by induction that unit vocabulary finds a key exactly if its section had it before,
// for keys of two bits.
func TestVocabulariesAreProven(t *testing.T) {
	toolchain(t, "yosys")
	sources := []string{vocabSource, vocabRegisters, pipeSource}
	require.Empty(t, proveVocabulary(t, sourceFolder(t, unchanged, sources...), false))
	requireCovers(t, 1, func(folder string) string { return proveVocabulary(t, folder, true) }, sources...)
}

// seededFault is a change of a source that makes it wrong: Old becomes New.
type seededFault struct{ Source, Name, Old, New string }

// seededFaults returns the faults of a source in testdata/faults.json.
func seededFaults(t *testing.T, source string) []seededFault {
	t.Helper()
	text, err := os.ReadFile("testdata/faults.json")
	require.NoError(t, err)
	var list []seededFault
	require.NoError(t, json.Unmarshal(text, &list))
	list = slices.DeleteFunc(list, func(f seededFault) bool { return f.Source != source })
	require.NotEmpty(t, list, source)
	return list
}

// TestProofFindsFaults checks that the proofs fail for each of some faults.
func TestProofFindsFaults(t *testing.T) {
	toolchain(t, "yosys", "yosys-smtbmc", "z3")
	for source, p := range map[string]struct {
		prove  func(t *testing.T, folder string, falsify bool) string
		others []string
	}{
		pipeSource: {func(t *testing.T, folder string, _ bool) string { return provePipe(t, folder, 2) }, nil},
		queueSource: {func(t *testing.T, folder string, falsify bool) string {
			return proveQueue(t, folder, 2, falsify)
		}, nil},
		spreadSource: {proveSpread, nil},
		listsSource:  {proveLists, []string{pipeSource, listsRegisters}},
		linesSource:  {proveLines, []string{pipeSource, linesRegisters, delaySource, numbersSource, endsSource}},
		gatherSource: {proveGather, []string{pipeSource, gatherRegisters}},
		packerSource: {provePacker, []string{pipeSource, packerRegisters}},
		vocabSource:  {proveVocabulary, []string{pipeSource, vocabRegisters}},
	} {
		for _, fault := range seededFaults(t, source) {
			t.Run(fault.Name, func(t *testing.T) {
				folder := sourceFolder(t, func(file, text string) string {
					if file != source {
						return text
					}
					changed := strings.ReplaceAll(text, fault.Old, fault.New)
					require.NotEqual(t, text, changed, "the source does not hold %q", fault.Old)
					return changed
				}, append(p.others, source)...)
				found := p.prove(t, folder, false)
				require.NotEmpty(t, found)
				require.True(t, source == pipeSource || strings.Contains(found, "proof did fail"), found)
			})
		}
	}
}

// lineOf returns the first line of a text.
func lineOf(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return string(line)
}
