package cosim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/internal/shared"
)

// tools returns the tools. Without them it skips the test, or fails it if they are required.
func tools(t *testing.T) *Tools {
	t.Helper()
	found, err := FindTools(t.Context())
	if errors.Is(err, ErrTools) {
		shared.MissingSimulator(t, err)
	}
	require.NoError(t, err)
	return found
}

// start returns the simulator of a unit. Without Verilator it skips the test, or fails it if the tools are required.
func start(t *testing.T, name string) (rtl.Unit, *Simulator) {
	t.Helper()
	unit, err := rtl.Named(name)
	require.NoError(t, err)
	program, err := tools(t).Build(t.Context(), unit, simulatorFolder(t))
	require.NoError(t, err)
	simulator, err := Start(context.Background(), unit, program)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, simulator.Close()) })
	return unit, simulator
}

// simulatorFolder is where simulators are kept from one run of the tests to the next.
func simulatorFolder(t *testing.T) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return t.TempDir()
	}
	return filepath.Join(cache, "millrace", "rtl")
}

// byUnit groups cases by their units.
func byUnit(cases []unitCase) map[string][]unitCase {
	grouped := make(map[string][]unitCase)
	for _, c := range cases {
		grouped[c.setup.Unit] = append(grouped[c.setup.Unit], c)
	}
	return grouped
}

// TestUnitsAreKernels checks that every unit computes what its kernel and its reference compute, and that it takes the
// cycles of its description. Then it streams the same values again with waits at the input and at the output.
func TestUnitsAreKernels(t *testing.T) {
	const count = 8192
	cases := byUnit(unitCases(t, count, 1))
	units, err := rtl.Units()
	require.NoError(t, err)
	require.Len(t, cases, len(units))
	for _, described := range units {
		t.Run(described.Name, func(t *testing.T) {
			unit, simulator := start(t, described.Name)
			for turn, c := range cases[unit.Name] {
				require.NoError(t, simulator.Configure(c.setup))
				want := c.kernel(t, c.stream)
				requireResults(t, c, unit, c.reference(c.stream), want, "kernel")
				results, cycles, err := simulator.Run(c.stream)
				require.NoError(t, err, c.name)
				requireResults(t, c, unit, want, c.said(t, results), "unit")
				require.EqualValues(t, cyclesOf(c, unit), cycles, "%s: cycles", c.name)

				stalled := c.stream
				stalled.InputSeed, stalled.OutputSeed = uint32(3*turn), uint32(5*turn+1)
				results, cycles, err = simulator.Run(stalled)
				require.NoError(t, err, c.name)
				requireResults(t, c, unit, want, c.said(t, results), "unit that waits")
				if c.read == nil {
					require.Greater(t, cycles, uint64(cyclesOf(c, unit)), "%s waited", c.name)
				}
			}
		})
	}
}

// cyclesOf returns the cycles that the unit's description says for a case, when nothing waits.
func cyclesOf(c unitCase, unit rtl.Unit) int {
	transfers := c.cycles
	if c.read == nil {
		transfers = len(c.stream.Words) / rtl.TransferWords(unit.Input)
	}
	return (transfers-1)*unit.InitiationInterval + 1 + unit.Latency
}

// said returns what results of the unit say, in the form of the case's kernel and reference.
func (c unitCase) said(t *testing.T, results []uint64) []uint64 {
	t.Helper()
	if c.read == nil {
		return results
	}
	said, err := c.read(results)
	require.NoError(t, err, c.name)
	return said
}

// splitSections splits the words of a unit's results behind each transfer that is marked as the last of its section.
func splitSections(unit rtl.Unit, results []uint64) [][]uint64 {
	words := rtl.TransferWords(unit.Output)
	last, _ := rtl.LastBit(unit.Output)
	var sections [][]uint64
	begin := 0
	for at := words; at <= len(results); at += words {
		if results[at-words+last/64]>>(last%64)&1 == 1 || at == len(results) {
			sections = append(sections, results[begin:at])
			begin = at
		}
	}
	return sections
}

// eachSection has a function that reads the results of one section read those of sections that follow one another.
func eachSection(name string, read func([]uint64) ([]uint64, error)) func([]uint64) ([]uint64, error) {
	return func(results []uint64) ([]uint64, error) {
		unit, err := rtl.Named(name)
		if err != nil {
			return nil, err
		}
		var said []uint64
		for n, section := range splitSections(unit, results) {
			one, err := read(section)
			if err != nil {
				return nil, fmt.Errorf("section %d: %w", n, err)
			}
			said = append(said, one...)
		}
		return said, nil
	}
}

// requireResults compares the words of results.
func requireResults(t *testing.T, c unitCase, unit rtl.Unit, want, got []uint64, what string) {
	t.Helper()
	require.Len(t, got, len(want), "%s: %s", c.name, what)
	if slices.Equal(want, got) {
		return
	}
	for i := range want {
		if want[i] == got[i] {
			continue
		}
		if c.read != nil {
			require.Equal(t, want[i], got[i], "%s: %s, value %d", c.name, what, i)
		}
		in, out := rtl.TransferWords(unit.Input), rtl.TransferWords(unit.Output)
		n := i / out
		require.Equal(t, want[n*out:(n+1)*out], got[n*out:(n+1)*out], "%s: %s, value %d: %#x", c.name, what, n,
			c.stream.Words[n*in:(n+1)*in])
	}
}

// TestResetAndAnotherSetup resets a unit and writes other registers. The unit must compute with these registers only,
// and in the same number of cycles.
func TestResetAndAnotherSetup(t *testing.T) {
	_, simulator := start(t, "positive_modulus")
	for _, modulus := range []int64{10, 7, 10} {
		setup, err := rtl.PositiveModulus(modulus)
		require.NoError(t, err)
		require.NoError(t, simulator.Reset())
		require.NoError(t, simulator.Configure(setup))
		results, cycles, err := simulator.Run(Stream{Words: []uint64{23}})
		require.NoError(t, err)
		require.Equal(t, []uint64{uint64(23 % modulus)}, results)
		require.EqualValues(t, 1+simulator.unit.Latency, cycles)
	}
	results, _, err := simulator.Run(Stream{})
	require.NoError(t, err)
	require.Empty(t, results)
}

func TestWhatASimulatorRefuses(t *testing.T) {
	unit, simulator := start(t, "fill_null")
	require.ErrorContains(t, simulator.Configure(rtl.ClampInt64(0, 1)),
		"a setup of unit clamp was given to unit fill_null")
	_, _, err := simulator.Run(Stream{Words: []uint64{1}})
	require.ErrorContains(t, err, "1 words are no transfers of 2 words")
	program, err := tools(t).Build(t.Context(), unit, simulatorFolder(t))
	require.NoError(t, err)
	other, err := rtl.Named("clamp")
	require.NoError(t, err)
	_, err = Start(t.Context(), other, program)
	require.ErrorContains(t, err, "made of other sources")
}

// TestSourcesThatVerilatorRefuses checks that the error of a unit that Verilator refuses has Verilator's reason.
func TestSourcesThatVerilatorRefuses(t *testing.T) {
	unit, _ := start(t, "clamp")
	unit.Sources = []string{unit.Top} // the register package is missing
	_, err := tools(t).Build(t.Context(), unit, t.TempDir())
	require.ErrorContains(t, err, "clamp_registers")
}

// TestSplitVectorsAreThere checks that the vectors which Verilator is asked to split are vectors of the sources:
// Verilator does not complain of others.
func TestSplitVectorsAreThere(t *testing.T) {
	text, err := rtl.Sources.ReadFile(split)
	require.NoError(t, err)
	vectors := regexp.MustCompile(`(?m)^split_var -module "(\w+)" -var "(\w+)"$`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, vectors, strings.Count(string(text), "\nsplit_var"))
	require.NotEmpty(t, vectors)
	for _, v := range vectors {
		files, err := fs.Glob(rtl.Sources, "*/"+v[1]+".sv")
		require.NoError(t, err)
		require.Len(t, files, 1, v[1])
		source, err := rtl.Sources.ReadFile(files[0])
		require.NoError(t, err)
		require.Contains(t, string(source), "module "+v[1]+" ")
		require.Regexp(t, `logic \[.*:0\] +`+v[2]+";", string(source))
	}
}

// record is a short run of one case, kept in testdata.
type record struct {
	Case    string   `json:"case"`
	Words   []uint64 `json:"words"`
	Results []uint64 `json:"results"`
	Cycles  uint64   `json:"cycles"`
}

// recording is what testdata keeps of a unit.
type recording struct {
	Sources string   `json:"sources_sha256"`
	Records []record `json:"records"`
}

// TestKernelsAreRecords compares the kernels with runs that simulators of the present sources made, and needs no
// Verilator itself. MILLRACE_UPDATE=1 makes the records again, with Verilator.
func TestKernelsAreRecords(t *testing.T) {
	for name, cases := range byUnit(unitCases(t, 64, 2)) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", name+".json")
			if goldenfile.Updating() {
				goldenfile.Text(t, path, simulatedRecording(t, name, cases))
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			var kept recording
			require.NoError(t, json.Unmarshal(text, &kept))
			unit, err := rtl.Named(name)
			require.NoError(t, err)
			digest, err := unit.Digest()
			require.NoError(t, err)
			require.Equal(t, digest, kept.Sources, "%s was recorded of other sources: record it again with "+
				"MILLRACE_UPDATE=1 go test ./fpga/rtl/cosim, which needs Verilator", path)
			require.Len(t, kept.Records, len(cases))
			for i, c := range cases {
				kept := kept.Records[i]
				require.Equal(t, c.name, kept.Case)
				require.Equal(t, c.stream.Words, kept.Words, c.name)
				requireResults(t, c, unit, c.kernel(t, c.stream), c.said(t, kept.Results), "record")
				require.EqualValues(t, cyclesOf(c, unit), kept.Cycles, c.name)
			}
		})
	}
}

// simulatedRecording runs the cases of a unit and returns the text of its file.
func simulatedRecording(t *testing.T, name string, cases []unitCase) string {
	unit, simulator := start(t, name)
	digest, err := unit.Digest()
	require.NoError(t, err)
	made := recording{Sources: digest}
	for _, c := range cases {
		require.NoError(t, simulator.Configure(c.setup))
		results, cycles, err := simulator.Run(c.stream)
		require.NoError(t, err)
		made.Records = append(made.Records,
			record{Case: c.name, Words: c.stream.Words, Results: results, Cycles: cycles})
	}
	var text strings.Builder
	require.NoError(t, json.NewEncoder(&text).Encode(made))
	return strings.ReplaceAll(text.String(), `{"case"`, "\n{\"case\"")
}
