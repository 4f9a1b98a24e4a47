package rtl

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// TestProofFindsFaults checks that the proofs fail for each of some faults.
func TestProofFindsFaults(t *testing.T) {
	toolchain(t, "yosys", "yosys-smtbmc", "z3")
	try := func(name, source, old, fault string, prove func(t *testing.T, folder string) string, others ...string) {
		folder := sourceFolder(t, func(file, text string) string {
			if file != source {
				return text
			}
			changed := strings.ReplaceAll(text, old, fault)
			require.NotEqual(t, text, changed, "%s: the source does not hold %q", name, old)
			return changed
		}, append(others, source)...)
		t.Run(name, func(t *testing.T) { require.NotEmpty(t, prove(t, folder)) })
	}
	for name, fault := range map[string][2]string{
		"a credit too many":            {"(PointerWidth + 1)'(Depth);", "(PointerWidth + 1)'(Depth + 1);"},
		"a credit is never given back": {"(issue) + (PointerWidth + 1)'(pop);", "(issue);"},
		"credits do not stop anything": {"in_ready_o  = credit_q != '0;", "in_ready_o  = 1'b1;"},
		"a result that waits is left":  {"out_valid_o & out_ready_i;", "out_valid_o;"},
		"the write stands still":       {"write_q + PointerWidth'(push)", "write_q"},
		"results pass one another":     {"read_q + PointerWidth'(pop)", "read_q - PointerWidth'(pop)"},
		"a result enters twice":        {"= under_way_q[Latency-1];", "= under_way_q[Latency-1] | under_way_q[0];"},
	} {
		try(name, pipeSource, fault[0], fault[1], func(t *testing.T, folder string) string {
			return provePipe(t, folder, 2)
		})
	}
	for name, fault := range map[string][2]string{
		"a null takes a value":                {"advance & ~absent;", "advance;"},
		"a null is not a row":                 {"end else if (advance) begin", "end else if (take) begin"},
		"the nulls of the row before":         {"word_q : bits >> 1", "word_q : bits"},
		"a word is read twice":                {"6] + 1'b1;", "6];"},
		"a section begins with any word":      {"begins_q ? first_q : bits_q", "bits_q"},
		"a section begins within a word":      {"begins_q <= 1'b1;", "begins_q <= 1'b0;"},
		"the rows end a cycle late":           {"rows_done_q <= row_q == last_row_q;", "rows_done_q <= 1'b0;"},
		"rows of the section before":          {"rows_done_q <= rows_i == '0;", "rows_done_q <= 1'b1;"},
		"a transfer is taken over another":    {"~behind_full_q & ~closed_q;", "~closed_q;"},
		"a transfer behind the last":          {"~behind_full_q & ~closed_q;", "~behind_full_q;"},
		"a transfer passes another":           {"behind_full_q ? behind_q : in_data_i;", "in_data_i;"},
		"a transfer is spread twice":          {"(push | behind_full_q) & ~move;", "push | (behind_full_q & ~move);"},
		"a section ends with any transfer":    {"(ended_q | (leave & last))", "(ended_q | leave)"},
		"values that are left are no damage":  {"(has_value & rows_done_q) |", ""},
		"a section is done without a value":   {"ended_q & (rows_done_q | damaged_q);", "ended_q;"},
		"a mark is not seen":                  {"(leave & held_q[260]) |", ""},
		"damage goes on to the next section":  {"damaged_q     <= ~next_i & (", "damaged_q     <= ("},
		"a transfer begins with its second":   {"lane_q <= '0;", "lane_q <= 3'd1;"},
		"two lanes change places":             {"out_value_o = held_q[127:64];", "out_value_o = held_q[191:128];"},
		"the last value leaves with the rows": {"lane_q + 3'd1 == count", "lane_q + 3'd2 == count"},
	} {
		try(name, spreadSource, fault[0], fault[1], func(t *testing.T, folder string) string {
			fault := proveSpread(t, folder, false)
			require.True(t, fault == "" || strings.Contains(fault, "proof did fail"), fault)
			return fault
		})
	}
	for name, fault := range map[string][2]string{
		"a full queue takes a beat":     {"(held != (BeatWidth + 1)'(Beats))", "1'b1"},
		"a beat behind the last":        {"(~ended_q & (held", "((held"},
		"bytes of no beat count":        {"= push ? available_q", "= in_valid_i ? available_q"},
		"taken bytes stay":              {"come - AvailableWidth'(take_i)", "come"},
		"the next beat is not the next": {"(BeatWidth - 1)'(front[0]);", "(BeatWidth - 1)'(0);"},
		"the beats change places":       {"front[0] ? {even, odd}", "~front[0] ? {even, odd}"},
		"dropping does not end":         {"dropping_q & ~(in_valid_i & in_last_i)", "dropping_q"},
		"what is done is not dropped":   {"<= ~ended_q & ~(in", "<= 1'b0 & ~(in"},
		"another section is dropped":    {"<= ~ended_q & ~(in", "<= ~(in"},
		"a dropped beat is kept":        {"in_valid_i & in_ready_o & ~dropping_q;", "in_valid_i & in_ready_o;"},
	} {
		try(name, queueSource, fault[0], fault[1], func(t *testing.T, folder string) string {
			fault := proveQueue(t, folder, 2, false)
			require.True(t, fault == "" || strings.Contains(fault, "proof did fail"), fault)
			return fault
		})
	}
	for name, fault := range map[string][2]string{
		"a transfer is taken beside a last row":  {"admitted & ~closing_q;", "admitted;"},
		"a last row leaves before there is room": {"closing_q) & admitted;", "(closing_q | admitted));"},
		"a last row is not awaited":              {"else if (issue) closing_q", "else closing_q"},
		"a last row of no section":               {"<= ~closing_q & in_data_i[60];", "<= in_data_i[60];"},
		"the mark comes early":                   {"damaged, closing3_q,", "damaged, closing2_q,"},
		"a cycle without a transfer is a result": {"<= rst_ni & issued1_q;", "<= rst_ni;"},
	} {
		try(name, listsSource, fault[0], fault[1], func(t *testing.T, folder string) string {
			fault := proveLists(t, folder, false)
			require.True(t, fault == "" || strings.Contains(fault, "proof did fail"), fault)
			return fault
		}, pipeSource, listsRegisters)
	}
	for name, fault := range map[string][2]string{
		"a transfer is taken beside an end":      {"admitted & ~closing_q;", "admitted;"},
		"an end leaves before there is room":     {"closing_q) & admitted;", "(closing_q | admitted));"},
		"an end is not awaited":                  {"else if (issue) begin\n      closing_q", "else begin\n      closing_q"},
		"an end behind every section":            {"in_data_i[35] & full;", "in_data_i[35];"},
		"an end behind an end":                   {"<= ~closing_q & in_data_i[35]", "<= in_data_i[35]"},
		"the mark comes early":                   {"<= last_q[Stages-2];", "<= last_q[Stages-3];"},
		"a cycle without a transfer is a result": {"{issued_q[Stages-3:0], issue}", "{issued_q[Stages-3:0], 1'b1}"},
	} {
		try(name, linesSource, fault[0], fault[1], func(t *testing.T, folder string) string {
			fault := proveLines(t, folder, false)
			require.True(t, fault == "" || strings.Contains(fault, "proof did fail"), fault)
			return fault
		}, pipeSource, linesRegisters, delaySource, numbersSource, endsSource)
	}
	for name, fault := range map[string][2]string{
		"a transfer is taken with its first half": {"admitted & (second_q | ~halves);", "admitted;"},
		"a half is issued without room":           {"issue      = in_valid_i & admitted;", "issue      = in_valid_i;"},
		"a second half is issued twice":           {"halves & ~second_q;", "halves;"},
		"a second half is not awaited":            {"else if (issue) second_q", "else second_q"},
		"a second half is full":                   {"values = 3'(count - 4'd4);", "values = 3'd4;"},
		"both halves are the last":                {"in_data_i[260] & in_ready_o;", "in_data_i[260];"},
		"a cycle without a transfer is a result":  {"{issued_q[1:0], issue}", "{issued_q[1:0], 1'b1}"},
	} {
		try(name, gatherSource, fault[0], fault[1], func(t *testing.T, folder string) string {
			fault := proveGather(t, folder, false)
			require.True(t, fault == "" || strings.Contains(fault, "proof did fail"), fault)
			return fault
		}, pipeSource, gatherRegisters)
	}
	for name, fault := range map[string][2]string{
		"a full half takes a tile":           {"in_ready_o  = ~full_q[fill_q];", "in_ready_o  = 1'b1;"},
		"a half is free before its last row": {"& ~drain_q};", "};"},
		"a tile leaves before it came":       {"issue       = full_q[drain_q] & admitted;", "issue       = admitted;"},
		"a damaged tile is a whole one":      {"column_q[4] | ~column_ends;", "column_q[4];"},
		"the columns of the other tile":      {"drain_q ? columns_odd_q : columns_even_q;", "columns_even_q;"},
		"the rows change places":             {"{drain_q, read_q}", "{drain_q, ~read_q}"},
		"values go to every column":          {"push & (column_q == 5'(column));", "push;"},
	} {
		try(name, packerSource, fault[0], fault[1], func(t *testing.T, folder string) string {
			fault := provePacker(t, folder, false)
			require.True(t, fault == "" || strings.Contains(fault, "proof did fail"), fault)
			return fault
		}, pipeSource, packerRegisters)
	}
	for name, fault := range map[string][2]string{
		"a key comes every cycle":        {"admitted & ~busy_q;", "admitted;"},
		"the key before is not known":    {"~fixed_q & before_valid_q &", "1'b0 &"},
		"the key before of no section":   {"before_valid_q <= 1'b0;", "before_valid_q <= 1'b1;"},
		"any index is good":              {"(held3_q == key3_q) & ({1'b0", "({1'b0"},
		"keys of the section before":     {"& ({1'b0, index3_q} < (fixed_q ? size_q : count_q))", ""},
		"a new key is written elsewhere": {": count_q[KeyWidth-1:0];\n  always_ff", ": index3_q;\n  always_ff"},
		"all keys have one index":        {"(KeyWidth + 1)'(is_new);", "'0;"},
	} {
		try(name, vocabSource, fault[0], fault[1], func(t *testing.T, folder string) string {
			fault := proveVocabulary(t, folder, false)
			require.True(t, fault == "" || strings.Contains(fault, "proof did fail"), fault)
			return fault
		}, pipeSource, vocabRegisters)
	}
}

// lineOf returns the first line of a text.
func lineOf(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return string(line)
}
