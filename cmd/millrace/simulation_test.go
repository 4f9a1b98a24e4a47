package main

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl/cosim"
	"github.com/millrace/millrace/internal/shared"
)

// wantSimulators skips a test without the tools that make simulators, or fails it if they are required.
func wantSimulators(t *testing.T) {
	t.Helper()
	_, err := cosim.FindTools(t.Context())
	if err != nil {
		shared.MissingSimulator(t, err)
	}
	require.NoError(t, err)
}

// TestPreprocessBySimulation checks that the engine rtl writes the bytes of the engine cpu: of RM1 and RM5, in PLAIN
// and dictionary pages, packed and not, of the data of make demo, and of hexadecimal tokens.
func TestPreprocessBySimulation(t *testing.T) {
	wantSimulators(t)
	hex := file(t, "hex.yaml", `name: hex
batch: 64
label: {column: label}
dense:
  - columns: [int_0..int_12]
    ops: [fill_null: 0, clamp: {min: 0}, log: {add: 1}]
sparse:
  - columns: [cat_0..cat_25]
    ops: [hex_to_int, fill_null: 0, positive_modulus: 5000]
`)
	for name, c := range map[string]struct {
		pipeline string
		data     []string
		units    []string // beside list_lengths, hybrid_decoder, lane and row_packer
	}{
		"rm1": {"rm1", []string{"--rows", "600", "--model", "rm1"}, nil},
		"rm1 dictionary": {"rm1", []string{"--rows", "300", "--model", "rm1", "--encoding", "dictionary"},
			[]string{"plain_decoder"}},
		"rm1 v2": {"rm1", []string{"--rows", "300", "--model", "rm1", "--page-version", "2", "--codec", "snappy"},
			nil},
		"rm5": {"rm5", []string{"--rows", "150", "--model", "rm5", "--codec", "snappy"}, nil},
		"rm5 dictionary": {"rm5", []string{"--rows", "100", "--model", "rm5", "--encoding", "dictionary"},
			[]string{"plain_decoder"}},
		"demo": {"rm1", []string{"--rows", "700", "--model", "rm1", "--codec", "snappy", "--partitions", "2",
			"--row-group-rows", "200"}, nil},
		"d1": {hex, []string{"--rows", "300", "--model", "d1"}, []string{"fill_null", "hex_to_int", "positive_modulus"}},
	} {
		t.Run(name, func(t *testing.T) {
			data := generate(t, c.data...)
			dir := t.TempDir()
			outputs := make(map[string]string)
			var r preprocessResult
			for _, engine := range []string{"cpu", "rtl"} {
				outputs[engine] = filepath.Join(dir, engine)
				text := must(t, "preprocess", "--pipeline", c.pipeline, "--in", data, "--engine", engine, "--batch", "128",
					"--out", outputs[engine], "--progress", "none", "--output", "json")
				r = decode[preprocessResult](t, text)
				require.Equal(t, engine, r.PerDrive[0].Engine)
				require.Equal(t, engine == "rtl", r.RTL != nil)
			}
			want, got := content(t, outputs["cpu"]), content(t, outputs["rtl"])
			require.NotEmpty(t, want)
			for file := range want {
				require.True(t, want[file] == got[file], "%s differs", file)
			}
			require.Len(t, got, len(want))
			units := []string{"hybrid_decoder", "lane", "list_lengths", "row_packer"}
			var names []string
			for _, u := range r.RTL.Units {
				names = append(names, u.Unit)
			}
			require.ElementsMatch(t, append(units, c.units...), names)
			require.Less(t, r.RTL.Cycles, int64(2_000_000))
			require.NotEmpty(t, r.RTL.Firmware)
		})
	}
}

// TestPreprocessTextBySimulation checks that the engine rtl writes the bytes of the engine cpu of Criteo's text, of
// which some lines are malformed, and of binary rows.
func TestPreprocessTextBySimulation(t *testing.T) {
	wantSimulators(t)
	var lines strings.Builder
	for i := range 120 {
		lines.WriteString(strings.Repeat("\n", i%3)) // lines begin at each byte of a transfer
		fmt.Fprintf(&lines, "%d%s", i%2, strings.Repeat(fmt.Sprintf("\t%d", 7*i-300), 12))
		fmt.Fprintf(&lines, "\t%s\n", strings.Repeat(fmt.Sprintf("\t%08x", i*0x1234567), 26))
		if i%9 == 0 {
			lines.WriteString("1\t2\n")
		}
	}
	rows := file(t, "rows.tsv", lines.String())
	var packed []byte
	for i := range 120 * 40 {
		packed = binary.LittleEndian.AppendUint32(packed, uint32(i)*0x9e3779b9)
	}
	for _, c := range []struct {
		flags   []string
		decoder string
	}{
		{[]string{"--in", rows, "--input-format", "criteo-tsv", "--malformed", "drop"}, "text_decoder"},
		{[]string{"--in", file(t, "rows.bin", string(packed)), "--input-format", "criteo-bin"}, "plain_decoder"},
	} {
		outputs := make(map[string]map[string]string)
		for _, engine := range []string{"cpu", "rtl"} {
			out := filepath.Join(t.TempDir(), engine)
			r := decode[preprocessResult](t, must(t, slices.Concat([]string{"preprocess", "--pipeline", "criteo", "--engine",
				engine, "--batch", "50", "--out", out, "--progress", "none", "--output", "json"}, c.flags)...))
			require.EqualValues(t, 120, r.Rows)
			outputs[engine] = content(t, out)
			if engine == "rtl" {
				var names []string
				for _, u := range r.RTL.Units {
					names = append(names, u.Unit)
				}
				require.ElementsMatch(t, []string{"lane", "row_packer", c.decoder}, names)
			}
		}
		require.Equal(t, outputs["cpu"], outputs["rtl"])
	}
}

// TestPreprocessBySimulationReports checks what the command prints for people, and that it names the step of a pipeline
// that no unit computes, before it writes anything.
func TestPreprocessBySimulationReports(t *testing.T) {
	wantSimulators(t)
	data := generate(t, "--rows", "50", "--model", "rm1")
	pipeline := func(ops string) string {
		return file(t, "p.yaml", "name: p\nbatch: 16\nsparse:\n  - columns: [cat_0..cat_3]\n    ops: ["+ops+"]\n")
	}
	out := filepath.Join(t.TempDir(), "out")
	text := must(t, "preprocess", "--pipeline", pipeline("fill_null: 1, sigrid_hash: {salt: 1, max: 100}"), "--in", data,
		"--engine", "rtl", "--out", out, "--progress", "none")
	for _, line := range []string{"the sum over 3 simulated units", "unit lane", "unit list_lengths", "firmware",
		"by the rtl"} {
		assert.Contains(t, text, line)
	}
	assert.NotContains(t, text, "carried from unit to unit")

	code, _, errs := millrace(t, "preprocess", "--pipeline", pipeline("fill_null: 1, zero_extend"), "--in", data,
		"--engine", "rtl", "--out", out+"2", "--progress", "none")
	require.Equal(t, 1, code)
	errorLine(t, errs, "zero_extend", "not in RTL", "cat_0")
	require.NoFileExists(t, out+"2")
	require.NoDirExists(t, out+"2")
}

// TestPreprocessWithoutSimulators checks that the command says which packages are missing.
func TestPreprocessWithoutSimulators(t *testing.T) {
	data := generate(t, "--rows", "20", "--model", "rm1")
	t.Setenv("PATH", t.TempDir())
	code, _, errs := millrace(t, "preprocess", "--pipeline", "rm1", "--in", data, "--engine", "rtl", "--out",
		filepath.Join(t.TempDir(), "out"), "--progress", "none")
	require.Equal(t, 1, code)
	require.True(t, strings.Contains(errs, "install Debian's packages verilator, g++ and make"), errs)
}
