package rtl

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// toolchain returns the paths of programs. Without one of them it skips the test, or fails it if they are required.
func toolchain(t *testing.T, names ...string) []string {
	t.Helper()
	paths := make([]string, len(names))
	for i, name := range names {
		path, err := exec.LookPath(name)
		if err != nil && os.Getenv("MILLRACE_RTL_SIM") != "require" && os.Getenv("CI") != "true" {
			t.Skipf("%s is not here: install yosys and z3", name)
		}
		require.NoError(t, err)
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
		text, err := fs.ReadFile(Sources, name)
		require.NoError(t, err)
		path := filepath.Join(folder, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(edit(name, string(text))), 0o600))
	}
	return folder
}

func unchanged(_, text string) string { return text }

const pipeSource = "common/stream_credit_pipe.sv"

// provePipe returns what is wrong with the elastic wrapper in a folder, for a datapath of a latency: "" if the base
// case and the induction step hold for its assertions and its covers are reached.
func provePipe(t *testing.T, folder string, latency int) string {
	tools := toolchain(t, "yosys", "yosys-smtbmc", "z3")
	model := filepath.Join(folder, fmt.Sprintf("pipe%d.smt2", latency))
	run := func(program string, arguments ...string) (string, error) {
		command := exec.CommandContext(t.Context(), program, arguments...)
		command.Dir = folder
		output, err := command.CombinedOutput()
		return string(output), err
	}
	output, err := run(tools[0], "-q", "-p", fmt.Sprintf("read_verilog -sv -formal -D FORMAL %s; "+
		"chparam -set Latency %d -set Width 4 stream_credit_pipe; prep -top stream_credit_pipe -flatten; memory_map; "+
		"opt -full; async2sync; dffunmap; write_smt2 -wires %s", pipeSource, latency, model))
	require.NoError(t, err, output)
	for _, mode := range [][]string{{"-t", "3"}, {"-i", "-t", "2"}, {"-c", "-t", "30"}} {
		output, err := run(tools[1], append(append([]string{"--noprogress", "-s", "z3"}, mode...), model)...)
		if err != nil || !strings.Contains(output, "PASSED") {
			return fmt.Sprintf("smtbmc %s: %s", strings.Join(mode, " "), output)
		}
	}
	return ""
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

// TestProofFindsFaults checks that the proof fails for each of some faults.
func TestProofFindsFaults(t *testing.T) {
	toolchain(t, "yosys", "yosys-smtbmc", "z3")
	for name, fault := range map[string][2]string{
		"a credit too many":            {"(PointerWidth + 1)'(Depth);", "(PointerWidth + 1)'(Depth + 1);"},
		"a credit is never given back": {"(issue) + (PointerWidth + 1)'(pop);", "(issue);"},
		"credits do not stop anything": {"in_ready_o  = credit_q != '0;", "in_ready_o  = 1'b1;"},
		"a result that waits is left":  {"out_valid_o & out_ready_i;", "out_valid_o;"},
		"the write stands still":       {"write_q + PointerWidth'(push)", "write_q"},
		"results pass one another":     {"read_q + PointerWidth'(pop)", "read_q - PointerWidth'(pop)"},
		"a result enters twice":        {"= under_way_q[Latency-1];", "= under_way_q[Latency-1] | under_way_q[0];"},
	} {
		folder := sourceFolder(t, func(_, text string) string {
			changed := strings.ReplaceAll(text, fault[0], fault[1])
			require.NotEqual(t, text, changed, "%s: the source does not hold %q", name, fault[0])
			return changed
		}, pipeSource)
		t.Run(name, func(t *testing.T) { require.NotEmpty(t, provePipe(t, folder, 2)) })
	}
}

// lineOf returns the first line of a text.
func lineOf(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return string(line)
}
