package rtl

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

// synthesis.json keeps what Yosys makes of every unit for UltraScale+, and docs/rtl.md shows it.
const synthesisFile = "synthesis.json"

// memoryLUTs says how many LUTs a cell of distributed memory takes.
var memoryLUTs = map[string]int{"RAM32M": 4, "RAM32M16": 8, "RAM64M": 4, "RAM64M8": 8, "RAM32X1D": 2, "RAM64X1D": 2}

// countCells sums the cells of a netlist. A kind of cell that it does not know is an error.
func countCells(cells map[string]int) (Resources, error) {
	var sum Resources
	carry4 := 0
	for kind, n := range cells {
		switch {
		case strings.HasPrefix(kind, "LUT") || kind == "INV":
			sum.LUT += n
		case strings.HasPrefix(kind, "SRL"):
			sum.SRL += n
		case memoryLUTs[kind] > 0:
			sum.LUTRAM += n * memoryLUTs[kind]
		case strings.HasPrefix(kind, "FD"):
			sum.FF += n
		case kind == "CARRY4":
			carry4 += n
		case kind == "RAMB18E2":
			sum.BRAM18 += n
		case kind == "RAMB36E2":
			sum.BRAM18 += 2 * n
		case kind == "URAM288":
			sum.URAM += n
		case kind == "DSP48E2":
			sum.DSP += n
		case strings.HasPrefix(kind, "MUXF"): // a part of the LUTs' slice
		default:
			return sum, fmt.Errorf("%d cells of the unknown kind %s", n, kind)
		}
	}
	sum.CARRY8 = (carry4 + 1) / 2
	return sum, nil
}

// synthesisCommands map a unit to the cells of UltraScale+ and write the netlist: sources, top module, file.
const synthesisCommands = "read_verilog -sv %s; synth_xilinx -family xcup -flatten -noiopad -noclkbuf -top %s; " +
	"write_json %s"

// synthesise has Yosys map a unit to the cells of UltraScale+, and returns the netlist.
func synthesise(t *testing.T, yosys string, unit Unit) []byte {
	t.Helper()
	folder := sourceFolder(t, unchanged, unit.Sources...)
	file := filepath.Join(folder, "netlist.json")
	command := exec.CommandContext(t.Context(), yosys, "-q", "-p", fmt.Sprintf(synthesisCommands,
		strings.Join(unit.Sources, " "), unit.Name, file))
	command.Dir = folder
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s: %s", unit.Name, output)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return text
}

// resourcesOf returns the cells of a unit's netlist, and its longest path.
func resourcesOf(t *testing.T, unit Unit, text []byte) Resources {
	t.Helper()
	mapped, err := readNetlist(text, unit.Name)
	require.NoError(t, err, unit.Name)
	resources, err := countCells(mapped.kinds())
	require.NoError(t, err, unit.Name)
	resources.Unit = unit.Name
	resources.Sources, err = unit.Digest()
	require.NoError(t, err)
	resources.Path, err = longestPath(mapped, screenDelays)
	require.NoError(t, err, unit.Name)
	return resources
}

func keptSynthesis(t *testing.T) Synthesis {
	t.Helper()
	text, err := os.ReadFile(synthesisFile)
	require.NoError(t, err)
	var kept Synthesis
	require.NoError(t, json.Unmarshal(text, &kept))
	return kept
}

// TestSynthesisIsOfTheseSources checks that the kept results are those of the present sources.
func TestSynthesisIsOfTheseSources(t *testing.T) {
	units, err := Units()
	require.NoError(t, err)
	kept := keptSynthesis(t)
	require.Len(t, kept.Units, len(units))
	for i, unit := range units {
		digest, err := unit.Digest()
		require.NoError(t, err)
		require.Equal(t, unit.Name, kept.Units[i].Unit)
		require.Equal(t, digest, kept.Units[i].Sources, "%s holds results of other sources of unit %s: run `make rtl` "+
			"with MILLRACE_UPDATE=1, which needs yosys", synthesisFile, unit.Name)
	}
}

// cachedSynthesis returns the netlist that Yosys makes of a unit; see cached.
func cachedSynthesis(t *testing.T, yosys, version string, unit Unit) []byte {
	t.Helper()
	digest, err := unit.Digest()
	require.NoError(t, err)
	key := sha256.Sum256([]byte(version + "\n" + synthesisCommands + "\n" + digest))
	return cached(t, fmt.Sprintf("%s-netlist-%x.json.gz", unit.Name, key[:8]), func() ([]byte, bool) {
		return synthesise(t, yosys, unit), true
	})
}

// TestSynthesis synthesises every unit and checks that no resource is more than 5 % above or below the kept number, and
// that the longest path is no longer than the kept one.
// That takes minutes of processor time on a machine that has not done it yet, so only `make rtl` runs the test.
func TestSynthesis(t *testing.T) {
	onlyWhole(t)
	yosys := toolchain(t, "yosys")[0]
	version, err := exec.CommandContext(t.Context(), yosys, "-V").Output()
	require.NoError(t, err)
	units, err := Units()
	require.NoError(t, err)
	kept, made := keptSynthesis(t), Synthesis{Tool: lineOf(version), Delays: screenDelays}
	for _, unit := range units {
		made.Units = append(made.Units, resourcesOf(t, unit, cachedSynthesis(t, yosys, made.Tool, unit)))
	}
	if goldenfile.Updating() {
		text, err := json.MarshalIndent(made, "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(synthesisFile, append(text, '\n'), 0o644))
		return
	}
	for i, kept := range kept.Units {
		for _, resource := range []struct {
			name       string
			made, kept int
		}{
			{"LUTs", made.Units[i].LUT, kept.LUT}, {"LUTs as shift registers", made.Units[i].SRL, kept.SRL},
			{"LUTs as memories", made.Units[i].LUTRAM, kept.LUTRAM}, {"flip-flops", made.Units[i].FF, kept.FF},
			{"CARRY8", made.Units[i].CARRY8, kept.CARRY8}, {"RAMB18", made.Units[i].BRAM18, kept.BRAM18},
			{"URAM", made.Units[i].URAM, kept.URAM}, {"DSP", made.Units[i].DSP, kept.DSP},
		} {
			require.InDelta(t, resource.kept, resource.made, 0.05*float64(resource.kept), "unit %s: %s", kept.Unit,
				resource.name)
		}
		path := made.Units[i].Path.Picoseconds
		require.LessOrEqual(t, path, kept.Path.Picoseconds, "unit %s: its longest path grew", kept.Unit)
		require.InDelta(t, kept.Path.Picoseconds, path, 0.05*float64(kept.Path.Picoseconds), "unit %s: path", kept.Unit)
	}
}

// TestPathsFitTheClock checks that the kept longest path of every unit fits the clock of the screen, by the delays that
// the screen has now.
func TestPathsFitTheClock(t *testing.T) {
	kept := keptSynthesis(t)
	require.Equal(t, screenDelays, kept.Delays, "%s holds paths by other delays: run `make rtl` with MILLRACE_UPDATE=1",
		synthesisFile)
	for _, unit := range kept.Units {
		require.NotEmpty(t, unit.Path.Begin)
		require.NotEmpty(t, unit.Path.End)
		require.GreaterOrEqual(t, unit.Path.LimitKHz(), uint32(ScreenedClockKHz), "unit %s: the path from %s to %s takes "+
			"%d ps: put a register into it", unit.Unit, unit.Path.Begin, unit.Path.End, unit.Path.Picoseconds)
	}
}

func TestCountCells(t *testing.T) {
	sum, err := countCells(map[string]int{"LUT2": 3, "LUT6": 4, "INV": 1, "SRL16E": 5, "SRLC32E": 1, "RAM32M16": 2,
		"FDRE": 9, "FDSE": 1, "CARRY4": 3, "RAMB18E2": 1, "RAMB36E2": 2, "DSP48E2": 7, "URAM288": 1, "MUXF7": 8})
	require.NoError(t, err)
	require.Equal(t, Resources{LUT: 8, SRL: 6, LUTRAM: 16, FF: 10, CARRY8: 2, BRAM18: 5, URAM: 1, DSP: 7}, sum)
	_, err = countCells(map[string]int{"$mul": 1})
	require.ErrorContains(t, err, "$mul")
}
