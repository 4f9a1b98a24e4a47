package rtl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The sources of the shell of kernels, which lie in package packaging.
const (
	controlSource  = "packaging/kernel_control.sv"
	readerSource   = "packaging/memory_reader.sv"
	writerSource   = "packaging/memory_writer.sv"
	shellSource    = "packaging/kernel_shell.sv"
	shellRegisters = "packaging/kernel_registers.sv"
)

// shellProof is the proof of one module of the shell: that of kernel_shell holds the other modules, and shows what
// their proofs assume of the shell.
type shellProof struct {
	source     string
	others     []string // sources of what the module holds, packages first
	parameters []string // of each proof
	prepare    string   // commands of Yosys, behind the hierarchy
	steps      int      // of the induction
	covers     int
	reach      int // cycles in which the covers are reached
}

// shellProofs are the proofs of the shell. What fills a beat does not matter, and the width of a beat decides the
// addresses alone: proofs of both ends are made.
func shellProofs() []shellProof {
	beats := []string{"-chparam Width 64", "-chparam Width 1024"}
	return []shellProof{
		{source: controlSource, others: []string{shellRegisters}, parameters: []string{""}, steps: 3},
		{source: readerSource, parameters: beats, steps: 2, covers: 1, reach: 9},
		{source: writerSource, parameters: beats, prepare: "delete -output memory_writer/wdata_o", steps: 2, covers: 1,
			reach: 10},
		{source: shellSource, others: []string{shellRegisters, controlSource, readerSource, writerSource},
			parameters: []string{"-chparam InputBits 8 -chparam OutputBits 8 -chparam Sections 0",
				"-chparam InputBits 8 -chparam OutputBits 8 -chparam Sections 1"},
			prepare: "delete -output kernel_shell/wdata_o", steps: 3, covers: 3, reach: 18},
	}
}

// sources returns all sources of the proof.
func (p shellProof) sources() []string { return append([]string{p.source}, p.others...) }

// solve returns what is wrong with the module in a folder: "" if the goal of Yosys's solver is met.
func (p shellProof) solve(t *testing.T, folder, parameters, goal string) string {
	module := strings.TrimSuffix(p.source[strings.Index(p.source, "/")+1:], ".sv")
	define := "-D FORMAL"
	if len(p.others) > 1 {
		define += " -D FORMAL_SHELL"
	}
	return solveFor(t, folder, fmt.Sprintf("read_verilog -sv -formal %s -defer %s; hierarchy -top %s %s; prep -flatten; "+
		"%s; opt_clean -purge; memory_map; opt -full; async2sync; dffunmap; simplemap t:$dff t:$mux; opt_clean -purge; "+
		"opt -full", define, strings.Join(append(p.others, p.source), " "), module, parameters, p.prepare), goal)
}

// TestShellIsProven proves by induction that the shell of kernels keeps the rules of AXI4 and of AXI4-Lite, whatever
// the unit and the host do, and that no run stands still; the sources say what is shown of each module and what is
// assumed.
func TestShellIsProven(t *testing.T) {
	toolchain(t, "yosys")
	for _, p := range shellProofs() {
		for _, parameters := range p.parameters {
			t.Run(p.source+parameters, func(t *testing.T) {
				t.Parallel()
				folder := sourceFolder(t, unchanged, p.sources()...)
				require.Empty(t, p.solve(t, folder, parameters, fmt.Sprint("-verify -tempinduct -maxsteps ", p.steps)))
			})
		}
		t.Run("covers of "+p.source, func(t *testing.T) {
			t.Parallel()
			alone := p
			alone.prepare += "; chformal -assert -remove t:$assert n:*" + coverAssertion + "* %d" // others take time
			requireCovers(t, p.covers, func(folder string) string {
				return alone.solve(t, folder, p.parameters[len(p.parameters)-1], fmt.Sprint("-falsify -seq ", p.reach))
			}, p.sources()...)
		})
	}
}

// TestShellProofFindsFaults checks that the proofs fail for each of some faults. Without kept results that takes
// minutes of processor time, so only `make rtl` runs the test.
func TestShellProofFindsFaults(t *testing.T) {
	onlyWhole(t)
	toolchain(t, "yosys")
	faults := map[string][]struct{ name, old, fault string }{
		controlSource: {
			{"a write is answered before its word", "address_q & word_q & ~answer_q;", "address_q & ~answer_q;"},
			{"an answer is lost behind another", "address_q & word_q & ~answer_q;", "address_q & word_q;"},
			{"an answer is withdrawn", "write | (answer_q & ~bready_i);", "write;"},
			{"an address is taken over another", "awready_o = ~address_q;", "awready_o = 1'b1;"},
			{"an answer to a read changes while it waits", "if (!rvalid_o) begin", "begin"},
			{"a read is lost", "arready_o = ~rvalid_o;", "arready_o = 1'b1;"},
			{"a run begins during another", "whole_q & ~busy;", "whole_q;"},
			{"a run begins without its bit", "& write_data_q[0];", ";"},
			{"a part of a word is written", "write & whole_q & ~busy;", "write & ~busy;"},
			{"a run that begins reads as idle", "busy = busy_i | start_o;", "busy = busy_i;"},
			{"a run ends twice", "(done_q | (was_busy_q & ~busy_i));", "(was_busy_q & ~busy_i);"},
			{"a run has ended before it began", "~start_o & (done_q", "(done_q"},
			{"the unit has the words in another order", "{write_data_q, low_q};", "{low_q, write_data_q};"},
		},
		readerSource: {
			{"an address changes while it waits", "(~arvalid_o | arready_i)", "1'b1"},
			{"an address is withdrawn", "ask | (arvalid_o & ~arready_i);", "ask;"},
			{"a burst of the rest is full", "{1'b0, unasked_q[3:0]};", "5'd16;"},
			{"the next burst is the same", "next_q + 64'(BurstBytes);", "next_q;"},
			{"a burst has a beat too few", "8'(beats) - 8'd1;", "8'(beats) - 8'd2;"},
			{"too many beats are under way", "<= 7'd48);", "<= 7'd49);"},
			{"a beat that waits counts", "take  = rvalid_i & rready_o;", "take  = rvalid_i;"},
			{"a beat is taken before the unit", "rready_o = ready_i;", "rready_o = 1'b1;"},
			{"a run ends before its beats", "left_q != '0;", "unasked_q != '0;"},
			{"a failed read of the run before", "fault_o <= 1'b0;", "fault_o <= fault_o;"},
		},
		writerSource: {
			{"beats wait for their address", "(begins ? 6'(beats) : 6'd0) - 6'(pop);",
				"(awvalid_o & awready_i ? 6'(awlen_o[4:0]) + 6'd1 : 6'd0) - 6'(pop);"},
			{"an address changes while it waits", "begins   = ~awvalid_o &", "begins   ="},
			{"a burst too many is open", "& (open_q != 4'hf) &", "&"},
			{"a burst before its results", "unasked_q[5:4] != '0;", "unasked_q[5:3] != '0;"},
			{"a burst of the rest during the run", "(ended_i & (unasked_q != '0))", "(unasked_q != '0)"},
			{"the rest is not written", "(full | (ended_i & (unasked_q != '0)));", "full;"},
			{"results go on behind 2^32", "& ~overflow_o & (results_o", "& (results_o"},
			{"a result without room", "& (results_o < room_i);", "& (results_o <= room_i);"},
			{"a result that none awaits", "come & ~ended_i &", "come &"},
			{"a full FIFO takes a result", "ready_o  = ~held_q[5];", "ready_o  = 1'b1;"},
			{"the last beat has no mark", "(sent_q == 4'hf) | (asked_q == 6'd1);", "sent_q == 4'hf;"},
			{"a beat is lost while the memory waits", "wvalid_o & wready_i;", "wvalid_o;"},
			{"a burst begins in the run before's", "wlast_o & pop ? 4'd0 : ", ""},
			{"a burst too short", "8'(beats) - 8'd1;", "8'(beats) - 8'd2;"},
			{"a run ends before its answers", "(held_q != '0) | (open_q != '0);", "(held_q != '0);"},
			{"results change places", "read_q    <= read_q + 5'(pop);", "read_q    <= read_q - 5'(pop);"},
		},
		shellSource: {
			{"a run ends before its last result", "~reading & (awaited_q == '0);", "~reading;"},
			{"a run ends before its transfers", "~reading & (awaited_q == '0);", "(awaited_q == '0);"},
			{"a run ends before it is in memory", "~(ended & ~writing)", "~ended"},
			{"a result that none awaits counts", "out_ready_o & ~ended &", "out_ready_o &"},
			{"sections are transfers", "in_ready_i & (Sections != 0 ? in_data_o[InputLast] : 1'b1);", "in_ready_i;"},
		},
	}
	for _, p := range shellProofs() {
		parameters := p.parameters[len(p.parameters)-1]
		for _, fault := range faults[p.source] {
			t.Run(fault.name, func(t *testing.T) {
				t.Parallel()
				folder := sourceFolder(t, func(file, text string) string {
					if file != p.source {
						return text
					}
					require.Equal(t, 1, strings.Count(text, fault.old), "%q is not once in the source", fault.old)
					return strings.Replace(text, fault.old, fault.fault, 1)
				}, p.sources()...)
				goal := fmt.Sprint("-verify -tempinduct -tempinduct-inductonly -maxsteps ", p.steps)
				require.Contains(t, p.solve(t, folder, parameters, goal), "proof did fail")
			})
		}
	}
}
