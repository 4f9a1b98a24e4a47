package simulation

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kept lists seeds whose days once found a fault of the product or of this package. After a change of what all
// schedules draw, their days are others, and the seeds leave the list.
var kept = []uint64{276, 423, 440, 1796058774811350765}

// TestDays runs the days of the kept seeds until every job has ended.
func TestDays(t *testing.T) {
	for _, seed := range kept {
		_, err := New(seed, Options{}).Run(200_000)
		require.NoError(t, err)
	}
}

// TestAPanicViolatesAProperty: a day in which a machine panics is repeated as other days that fail.
func TestAPanicViolatesAProperty(t *testing.T) {
	var trace strings.Builder
	w := New(1, Options{Trace: &trace})
	w.after(0, "a fault", func() { panic("a fault of a machine") })
	_, err := w.Run(10)
	var failure *Failure
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, "a machine panics: a fault of a machine", failure.What)
	assert.Contains(t, trace.String(), "simulation_test.go", "the trace has the stack")
}

// TestOneSeedIsOneDay runs the days of 200 seeds until every job has ended, of 50 with -short, and of 1,000 with
// MILLRACE_MUTANTS=1 (make mutants). It compares the hashes over the events of 50 days each with the hashes in
// testdata, which another machine may have written. After a change of the protocol, MILLRACE_UPDATE=1 writes the hashes
// of 1,000 days. It takes half a minute on a busy machine, because it computes a million and a half events.
func TestOneSeedIsOneDay(t *testing.T) {
	const file, group = "testdata/hashes.txt", 50
	days, update := 4*group, os.Getenv("MILLRACE_UPDATE") != ""
	switch {
	case update || os.Getenv("MILLRACE_MUTANTS") != "":
		days = 1000
	case testing.Short():
		days = group
	}
	var got strings.Builder
	hash := uint64(0)
	for seed := range uint64(days) {
		w := New(seed, Options{})
		_, err := w.Run(200_000)
		require.NoError(t, err)
		hash = Join(hash, w.Hash())
		if seed%group == group-1 {
			fmt.Fprintf(&got, "%d-%d %016x\n", seed-(group-1), seed, hash)
			hash = 0
		}
	}
	if update {
		require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want[:min(len(want), got.Len())]), got.String())
}

// mutants lists the mutants, each with a seed whose day shows it.
var mutants = map[Mutant]uint64{
	UnfencedWrites:    265,
	EarlyAnswer:       12,
	EarlyAttach:       2,
	OrderOfRecords:    1,
	ForgottenRecords:  2,
	ForgottenRanks:    2,
	OldState:          21,
	WrongContent:      1,
	SharedEditions:    1,
	DutiesStop:        1,
	ForgottenState:    2,
	EarlyEdition:      131,
	ConcludeTooEarly:  1,
	ForgottenEditions: 37,
	NoRepeats:         66,
	KeptEditions:      3,
	UnconfirmedErrors: 1796058774811350765,
}

// TestMutantsAreFound adds each mutant to the world and runs the day of its seed, which must fail, and the shortest day
// that is found for it. After a change of the protocol, `go run ./control/simulation/simulate --first 1 --mutant NAME`
// finds another seed.
func TestMutantsAreFound(t *testing.T) {
	for m, seed := range mutants {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			_, err := New(seed, Options{Mutant: m}).Run(200_000)
			var failure *Failure
			require.ErrorAs(t, err, &failure, "the day of seed %d does not show it", seed)
			checkShrunk(t, failure)
		})
	}
}

// TestSourceMutantsAreFound edits the source of a machine in an overlay, one edit at a time, and runs the day of the
// seed in testdata, which must fail. MILLRACE_MUTANTS=1 enables the runs. Each edit is compiled, which takes some
// processor seconds.
func TestSourceMutantsAreFound(t *testing.T) {
	raw, err := os.ReadFile("testdata/source_mutants.json")
	require.NoError(t, err)
	var list []struct {
		File, Old, New string
		Seed           uint64
	}
	require.NoError(t, json.Unmarshal(raw, &list))
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	for _, m := range list {
		path := filepath.Join(root, filepath.FromSlash(m.File))
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		before, after, has := strings.Cut(string(source), m.Old)
		require.True(t, has, "%s does not contain %q", m.File, m.Old)
		if os.Getenv("MILLRACE_MUTANTS") == "" {
			continue
		}
		dir := t.TempDir()
		edited, overlay := filepath.Join(dir, filepath.Base(path)), filepath.Join(dir, "overlay.json")
		replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: edited}})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(edited, []byte(before+m.New+after), 0o600))
		require.NoError(t, os.WriteFile(overlay, replace, 0o600))
		out, err := exec.CommandContext(t.Context(), "go", "run", "-overlay", overlay, "./simulate", "--seed",
			fmt.Sprint(m.Seed), "--shrink", "0").CombinedOutput()
		if assert.Error(t, err, "%s: %q for %q is not found", m.File, m.New, m.Old) {
			assert.Contains(t, string(out), "go run ./control/simulation/simulate --seed", "%s: %q", m.File, m.New)
		}
	}
}
