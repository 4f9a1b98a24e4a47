package dataset

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestSelectedPlanIsThatOfAShorterDataSet checks that a plan counts the passing rows only.
func TestSelectedPlanIsThatOfAShorterDataSet(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var all, passed []Partition
		var passing []int64
		for i := range rapid.IntRange(0, 4).Draw(rt, "partitions") {
			rows := rapid.Int64Range(0, 100).Draw(rt, "rows")
			n := rapid.Int64Range(0, rows).Draw(rt, "passing")
			name := string(rune('a' + i))
			all = append(all, Partition{Name: name, Rows: rows, RowGroups: []int64{rows}})
			passed = append(passed, Partition{Name: name, Rows: n, RowGroups: []int64{n}})
			passing = append(passing, n)
		}
		m, err := NewManifest(all)
		require.NoError(rt, err)
		short, err := NewManifest(passed)
		require.NoError(rt, err)
		o := Options{Batch: rapid.IntRange(1, 9).Draw(rt, "batch"), SplitBatches: rapid.IntRange(1, 3).Draw(rt, "split"),
			Tail: Tail(rapid.IntRange(0, 1).Draw(rt, "tail")), Shuffle: Shuffle(rapid.IntRange(0, 2).Draw(rt, "shuffle")),
			Seed: rapid.Uint64().Draw(rt, "seed")}
		if passing == nil {
			passing = []int64{}
		}
		selected, err := NewSelectedPlan(m, passing, o)
		require.NoError(rt, err)
		want, err := NewPlan(short, o)
		require.NoError(rt, err)
		require.Equal(rt, want, selected)
	})
}

func TestSelectionsThatDoNotFit(t *testing.T) {
	m, err := NewManifest([]Partition{{Name: "a", Rows: 3, RowGroups: []int64{3}}})
	require.NoError(t, err)
	for _, passing := range [][]int64{{}, {1, 2}, {-1}, {4}} {
		_, err := NewSelectedPlan(m, passing, Options{})
		require.ErrorIs(t, err, ErrManifest, "%d", passing)
	}
	for _, passing := range [][]int64{nil, {0}, {3}} {
		_, err := NewSelectedPlan(m, passing, Options{})
		require.NoError(t, err, "%d", passing)
	}
}

// TestASelectionIsPartOfTheJobsDigest holds the bytes that are hashed: the selection's digest behind all others.
func TestASelectionIsPartOfTheJobsDigest(t *testing.T) {
	without, err := JobDigest(Digest{1}, []byte("{}"), Options{})
	require.NoError(t, err)
	same, err := SelectedJobDigest(Digest{1}, nil, []byte("{}"), Options{})
	require.NoError(t, err)
	assert.Equal(t, without, same)
	selected, err := SelectedJobDigest(Digest{1}, &Digest{2}, []byte("{}"), Options{})
	require.NoError(t, err)
	other, err := SelectedJobDigest(Digest{1}, &Digest{3}, []byte("{}"), Options{})
	require.NoError(t, err)
	assert.NotEqual(t, without, selected)
	assert.NotEqual(t, selected, other)
	assert.Equal(t, "ff2664952c9120203a2d5e93cdcf8689875fea958688d8329cdb381816f92efe", selected.String())
}
