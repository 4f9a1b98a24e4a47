package cosim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
)

// seededFault is a change of a source that makes a unit wrong: Old, which the source has once, becomes New.
type seededFault struct{ Unit, Source, Name, Old, New string }

// seededFaults are the faults of units in testdata/faults.json, which their cases must find.
func seededFaults(t *testing.T) map[string][]seededFault {
	t.Helper()
	text, err := os.ReadFile("testdata/faults.json")
	require.NoError(t, err)
	var list []seededFault
	require.NoError(t, json.Unmarshal(text, &list))
	byUnit := map[string][]seededFault{}
	for _, fault := range list {
		byUnit[fault.Unit] = append(byUnit[fault.Unit], fault)
	}
	return byUnit
}

// TestComparisonFindsFaults seeds faults into units, which their cases must find. Each fault takes a build of the
// simulator, so only `make rtl` runs the test. The simulators are kept as those of the units are.
func TestComparisonFindsFaults(t *testing.T) {
	if os.Getenv("MILLRACE_RTL_WHOLE") != "1" {
		t.Skip("`make rtl` runs this test (MILLRACE_RTL_WHOLE=1)")
	}
	cases := byUnit(unitCases(t, 8192, 1))
	for name, faults := range seededFaults(t) {
		t.Run(name, func(t *testing.T) {
			unit, err := rtl.Named(name)
			require.NoError(t, err)
			cases := cases[name]
			kernels := make([][]uint64, len(cases))
			for i, c := range cases {
				kernels[i] = c.kernel(t, c.stream)
			}
			for _, fault := range faults {
				t.Run(fault.Name, func(t *testing.T) {
					simulator := startFaulty(t, unit, fault)
					for i, c := range cases {
						if differs(t, simulator, unit, c, kernels[i]) {
							return
						}
					}
					require.Fail(t, "no case finds the fault")
				})
			}
		})
	}
}

// startFaulty returns a simulator of a unit with a fault.
func startFaulty(t *testing.T, unit rtl.Unit, fault seededFault) *Simulator {
	t.Helper()
	text, err := rtl.Sources.ReadFile(fault.Source)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), fault.Old), "%s must hold %q once", fault.Source, fault.Old)
	key := fmt.Sprintf("%s\n%s\n%s", fault.Source, fault.Old, fault.New)
	return startChanged(t, unit, "fault", key, func(work string) []string {
		changed := strings.Replace(string(text), fault.Old, fault.New, 1)
		require.NoError(t, os.WriteFile(filepath.Join(work, filepath.FromSlash(fault.Source)), []byte(changed), 0o600))
		return unit.Sources
	})
}

// startChanged returns a simulator of what change makes of a unit's sources: it gets the folder that holds them and
// returns the files to compile. The simulator is kept under the digest of the sources and of key, which names the
// change.
func startChanged(t *testing.T, unit rtl.Unit, kind, key string, change func(work string) []string) *Simulator {
	t.Helper()
	verilator, err := exec.LookPath("verilator")
	require.NoError(t, err)
	digest, err := unit.Digest()
	require.NoError(t, err)
	name := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", compilerFlags(unit, digest), key, frameDigest(t)))
	program := filepath.Join(simulatorFolder(t), unit.Name+"-"+kind+"-"+hex.EncodeToString(name[:])[:16])
	if _, err := os.Stat(program); err != nil {
		work := t.TempDir()
		require.NoError(t, writeSources(unit, work))
		changed := unit
		changed.Sources = change(work)
		built, err := verilate(t.Context(), verilator, changed, digest, work, "-Wno-lint", "-Wno-UNOPTFLAT",
			"-MAKEFLAGS", "OPT_FAST=-O0 OPT_GLOBAL=-O0") // the compiler takes longer than the simulator
		require.NoError(t, err)
		require.NoError(t, install(built, program))
	}
	simulator, err := Start(context.Background(), unit, program)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, simulator.Close()) })
	return simulator
}

// frameDigest returns the digest of the frame around a simulated unit.
func frameDigest(t *testing.T) string {
	digest := sha256.New()
	for _, name := range frameFiles() {
		frame, err := rtl.Sources.ReadFile(name)
		require.NoError(t, err)
		digest.Write(frame)
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// differs reports whether a simulator's results or cycles for a case are not those of the kernel and the description.
func differs(t *testing.T, simulator *Simulator, unit rtl.Unit, c unitCase, kernel []uint64) bool {
	require.NoError(t, simulator.Configure(c.setup))
	stalled := c.stream
	stalled.InputSeed, stalled.OutputSeed = 3, 1
	for _, stream := range []Stream{c.stream, stalled} {
		results, cycles, err := simulator.Run(stream)
		if err != nil {
			return true // the unit stands still
		}
		if stream.OutputSeed == 0 && cycles != uint64(cyclesOf(c, unit)) {
			return true
		}
		if c.read != nil {
			if results, err = c.read(results); err != nil {
				return true
			}
		}
		if !slices.Equal(results, kernel) {
			return true
		}
	}
	return false
}
