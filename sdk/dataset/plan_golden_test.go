package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/shared"
)

const goldenPlans = "testdata/plans.v1.jsonl"

// goldenPlan is a line of goldenPlans, which testdata/plan.py made.
type goldenPlan struct {
	Groups  [][]int64 `json:"groups"`  // row groups of each partition
	Passing []int64   `json:"passing"` // nil: all rows
	Options struct {
		Batch        int      `json:"batch"`
		Boundary     Boundary `json:"boundary"`
		Tail         Tail     `json:"tail"`
		Shuffle      Shuffle  `json:"shuffle"`
		Seed         uint64   `json:"seed"`
		Epoch        uint64   `json:"epoch"`
		SplitBatches int      `json:"split_batches"`
		Window       int      `json:"window"`
	} `json:"options"`
	LeftOut int64 `json:"left_out"`
	// Mini-batch, offset, partition, first row, rows, position of the split, ID of the split.
	Fragments [][7]int64          `json:"fragments"`
	Windows   [][]json.RawMessage `json:"windows"` // first fragment, fragments, rows, permutation
}

// TestPlansGolden compares plans with those of the Python program in testdata/plan.py, which follows the package
// comment.
func TestPlansGolden(t *testing.T) {
	text, err := os.ReadFile(goldenPlans)
	require.NoError(t, err)
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	require.Greater(t, len(lines), 20)
	for i, line := range lines {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			var golden goldenPlan
			require.NoError(t, json.Unmarshal(line, &golden))
			comparePlan(t, &golden)
		})
	}
}

func comparePlan(t *testing.T, golden *goldenPlan) {
	p, err := NewSelectedPlan(grouped(t, golden.Groups...), golden.Passing, Options(golden.Options))
	require.NoError(t, err)
	assert.Equal(t, golden.LeftOut, p.LeftOut())
	var have [][7]int64
	for _, f := range fragments(t, p) {
		have = append(have, [7]int64{int64(f.MiniBatch), int64(f.Offset), int64(f.Partition), f.First, int64(f.Rows),
			int64(f.Split), int64(p.splitID(f.Split))})
	}
	if len(golden.Fragments)+len(have) > 0 {
		assert.Equal(t, golden.Fragments, have)
	}
	windows := 0
	for number := uint64(0); number < p.Fragments() && p.Options().Shuffle == ShuffleRows; windows++ {
		w, err := p.Window(number)
		require.NoError(t, err)
		permutation, err := p.RowPermutation(w)
		require.NoError(t, err)
		written, err := json.Marshal([]any{w.FirstFragment, w.Fragments, w.Rows, permutation})
		require.NoError(t, err)
		require.Less(t, windows, len(golden.Windows))
		want, err := json.Marshal(golden.Windows[windows])
		require.NoError(t, err)
		assert.JSONEq(t, string(want), string(written))
		number += uint64(w.Fragments)
	}
	assert.Len(t, golden.Windows, windows)
}

// TestGoldenPlansAreThoseOfThePythonProgram runs the program.
func TestGoldenPlansAreThoseOfThePythonProgram(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		shared.Missing(t, "install python3, which computes the golden plans")
	}
	command := exec.CommandContext(t.Context(), python, "-B", "plan.py")
	command.Dir = "testdata"
	command.Stderr = os.Stderr
	made, err := command.Output()
	require.NoError(t, err)
	want, err := os.ReadFile(goldenPlans)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(made), "write it with python3 plan.py > plans.v1.jsonl")
}

// grouped returns a manifest of partitions with these row groups.
func grouped(t require.TestingT, groups ...[]int64) *Manifest {
	partitions := make([]Partition, len(groups))
	for i := range groups {
		partitions[i] = Partition{Name: fmt.Sprint(i), RowGroups: groups[i]}
		for _, n := range groups[i] {
			partitions[i].Rows += n
		}
	}
	m, err := NewManifest(partitions)
	require.NoError(t, err)
	return m
}
