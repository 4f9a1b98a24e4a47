package scoredlist_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/scoredlist"
)

func TestPositions(t *testing.T) {
	require.Equal(t, []float32{9, 0, 1, 2, 0, 1}, scoredlist.AppendPositions([]float32{9}, []int32{3, 0, 2}))
	require.Empty(t, scoredlist.AppendPositions(nil, []int32{0, -1, math.MinInt32}), "lengths below 0 are no rows")
	// 2^24 + 1 is not a float32; the even neighbour is nearest.
	long := scoredlist.AppendPositions(nil, []int32{1<<24 + 2})
	require.Equal(t, []float32{1<<24 - 1, 1 << 24, 1 << 24}, long[1<<24-1:])
}

func TestPositionsAreReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lengths := rapid.SliceOfN(rapid.Int32Range(0, 40), 0, 20).Draw(t, "lengths")
		want := []float32{}
		for _, n := range lengths {
			want = append(want, scoredlist.ReferencePositions(make([]int64, n))...)
		}
		require.Equal(t, want, scoredlist.AppendPositions([]float32{}, lengths))
	})
}

func TestJoin(t *testing.T) {
	ids := scoredlist.IDs{Lengths: []int32{2, 0, 1, 1}, IDs: []int64{1, 2, 3, 4}}
	for _, c := range []struct {
		name   string
		scores scoredlist.Scores
		want   scoredlist.Lists
	}{
		{"one an id", scoredlist.Scores{Lengths: []int32{2, 0, 1, 1}, Scores: []float32{5, 6, 7, 8}},
			scoredlist.Lists{Lengths: []int32{2, 0, 1, 1}, IDs: []int64{1, 2, 3, 4}, Scores: []float32{5, 6, 7, 8}}},
		{"rows without ids or scores", scoredlist.Scores{Lengths: []int32{2, 3, 0, 1}, Scores: []float32{5, 6, 0, 0, 0, 8}},
			scoredlist.Lists{Lengths: []int32{2, 0, 0, 1}, IDs: []int64{1, 2, 4}, Scores: []float32{5, 6, 8}}},
		{"one for all", scoredlist.Scores{Lengths: []int32{1, 1, 0, 1}, Scores: []float32{5, 6, 8}, ForAll: true},
			scoredlist.Lists{Lengths: []int32{2, 0, 0, 1}, IDs: []int64{1, 2, 4}, Scores: []float32{5, 5, 8}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := scoredlist.Lists{Lengths: []int32{9}, IDs: []int64{9}, Scores: []float32{9}}
			require.NoError(t, got.Join(ids, c.scores))
			require.Equal(t, append([]int32{9}, c.want.Lengths...), got.Lengths)
			require.Equal(t, append([]int64{9}, c.want.IDs...), got.IDs)
			require.Equal(t, append([]float32{9}, c.want.Scores...), got.Scores)
		})
	}
}

func TestRowsThatDoNotFit(t *testing.T) {
	ids := scoredlist.IDs{Lengths: []int32{2, 1}, IDs: []int64{1, 2, 3}}
	good := scoredlist.Scores{Lengths: []int32{2, 1}, Scores: []float32{1, 2, 3}}
	for _, c := range []struct {
		name   string
		ids    scoredlist.IDs
		scores scoredlist.Scores
		want   error
	}{
		{"fewer scores", ids, scoredlist.Scores{Lengths: []int32{1, 1}, Scores: []float32{1, 2}}, scoredlist.ErrScores},
		{"more scores", ids, scoredlist.Scores{Lengths: []int32{2, 2}, Scores: make([]float32, 4)}, scoredlist.ErrScores},
		{"several for all", ids, scoredlist.Scores{Lengths: []int32{1, 2}, Scores: make([]float32, 3), ForAll: true},
			scoredlist.ErrScores},
		{"another number of rows", ids, scoredlist.Scores{Lengths: []int32{3}, Scores: make([]float32, 3)},
			scoredlist.ErrLengths},
		{"a length below 0", scoredlist.IDs{Lengths: []int32{2, -1}, IDs: make([]int64, 3)}, good, scoredlist.ErrLengths},
		{"scores missing", ids, scoredlist.Scores{Lengths: []int32{2, 1}, Scores: []float32{1, 2}}, scoredlist.ErrLengths},
		{"ids left", scoredlist.IDs{Lengths: []int32{2, 1}, IDs: make([]int64, 4)}, good, scoredlist.ErrLengths},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got scoredlist.Lists
			require.ErrorIs(t, got.Join(c.ids, c.scores), c.want)
			require.Zero(t, got)
		})
	}
	var got scoredlist.Lists
	err := got.Join(ids, scoredlist.Scores{Lengths: []int32{2, 2}, Scores: make([]float32, 4)})
	require.ErrorContains(t, err, "row 1 has 1 ids and 2 scores")
}

func TestJoinIsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ids scoredlist.IDs
		scores := scoredlist.Scores{ForAll: rapid.Bool().Draw(t, "forAll")}
		want := scoredlist.Lists{Lengths: []int32{}, IDs: []int64{}, Scores: []float32{}}
		fits := true
		for range rapid.IntRange(0, 20).Draw(t, "rows") {
			rowIDs := rapid.SliceOfN(rapid.Int64(), 0, 4).Draw(t, "ids")
			n := len(rowIDs)
			switch rapid.IntRange(0, 9).Draw(t, "scores") {
			case 0:
				n = rapid.IntRange(0, 4).Draw(t, "any")
			case 1:
				n = 0
			}
			if scores.ForAll {
				n = min(n, 1)
			}
			rowScores := rapid.SliceOfN(rapid.Float32(), n, n).Draw(t, "of ids")
			ids.Lengths, ids.IDs = append(ids.Lengths, int32(len(rowIDs))), append(ids.IDs, rowIDs...)
			scores.Lengths, scores.Scores = append(scores.Lengths, int32(n)), append(scores.Scores, rowScores...)
			keptIDs, keptScores, ok := scoredlist.ReferenceJoin(rowIDs, rowScores, scores.ForAll)
			fits = fits && ok
			want.Lengths, want.IDs = append(want.Lengths, int32(len(keptIDs))), append(want.IDs, keptIDs...)
			want.Scores = append(want.Scores, keptScores...)
		}
		got := scoredlist.Lists{Lengths: []int32{}, IDs: []int64{}, Scores: []float32{}}
		err := got.Join(ids, scores)
		if !fits {
			require.ErrorIs(t, err, scoredlist.ErrScores)
			return
		}
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}
