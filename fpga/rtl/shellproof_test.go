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
	for _, p := range shellProofs() {
		parameters := p.parameters[len(p.parameters)-1]
		for _, fault := range seededFaults(t, p.source) {
			t.Run(fault.Name, func(t *testing.T) {
				t.Parallel()
				folder := sourceFolder(t, func(file, text string) string {
					if file != p.source {
						return text
					}
					require.Equal(t, 1, strings.Count(text, fault.Old), "%q is not once in the source", fault.Old)
					return strings.Replace(text, fault.Old, fault.New, 1)
				}, p.sources()...)
				goal := fmt.Sprint("-verify -tempinduct -tempinduct-inductonly -maxsteps ", p.steps)
				require.Contains(t, p.solve(t, folder, parameters, goal), "proof did fail")
			})
		}
	}
}
