package dataset

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSharesFollowEachOtherAndDifferByOneAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Uint64Range(0, 1000).Draw(t, "total")
		ranks := rapid.IntRange(1, 40).Draw(t, "ranks")
		keep := rapid.Bool().Draw(t, "keep")
		each, end := total/uint64(ranks), uint64(0)
		for rank := range ranks {
			r := Share{Rank: rank, Ranks: ranks, KeepTail: keep}.Numbers(total)
			require.Equal(t, end, r.From)
			n := r.To - r.From
			require.True(t, n == each || keep && n == each+1)
			end = r.To
		}
		if keep {
			require.Equal(t, total, end)
		} else {
			require.Less(t, total-end, uint64(ranks))
		}
	})
}

// TestRowsAreDeliveredOrLeftOut checks that every row of an epoch is in a mini-batch of a rank or counted as left out.
func TestRowsAreDeliveredOrLeftOut(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows := rapid.SliceOfN(rapid.Int64Range(0, 60), 1, 8).Draw(rt, "rows")
		p, err := NewPlan(manifest(t, rows...), Options{Batch: rapid.IntRange(1, 40).Draw(rt, "batch"), SplitBatches: 3,
			Boundary: Boundary(rapid.IntRange(0, 1).Draw(rt, "boundary")),
			Tail:     Tail(rapid.IntRange(0, 1).Draw(rt, "tail")), Epoch: rapid.Uint64Range(0, 5).Draw(rt, "epoch")})
		require.NoError(rt, err)
		s := Share{Ranks: rapid.IntRange(1, 6).Draw(rt, "ranks"), KeepTail: rapid.Bool().Draw(rt, "keep")}
		left, err := s.LeftOut(p)
		all := int64(0)
		for _, n := range rows {
			all += n
		}
		delivered := int64(0)
		for s.Rank = range s.Ranks {
			for numbers := s.Numbers(p.MiniBatches()); numbers.From < numbers.To; numbers.From++ {
				mb, err := p.MiniBatch(numbers.From)
				require.NoError(rt, err)
				delivered += int64(mb.Rows)
			}
		}
		require.Equal(rt, all, delivered+left)
		require.Equal(rt, all > 0 && delivered == 0, errors.Is(err, ErrAllLeftOut), "%v", err)
	})
}

func TestADataSetOfLessThanAMiniBatchIsNotLeftOutSilently(t *testing.T) {
	for boundary, want := range map[Boundary]string{
		BoundaryPartition: "no partition (of 2) has the 10 rows of a mini-batch: use the tail keep, or a batch of at most 6",
		BoundaryNone:      "the data set lacks the 10 rows of a mini-batch: use the tail keep, or a batch of at most 9 rows",
	} {
		o := Options{Batch: 10, Boundary: boundary, Tail: DropTail}
		p, err := NewPlan(manifest(t, 6, 3), o)
		require.NoError(t, err)
		_, err = Share{}.LeftOut(p)
		require.ErrorIs(t, err, ErrAllLeftOut)
		require.ErrorContains(t, err, want)
		o.Batch = 9
		p, err = NewPlan(manifest(t, 6, 3), o)
		require.NoError(t, err)
		left, err := Share{}.LeftOut(p)
		if boundary == BoundaryPartition {
			require.ErrorIs(t, err, ErrAllLeftOut)
		} else {
			require.NoError(t, err)
			assert.Zero(t, left)
		}
	}
}

func TestAShareOfOneRankIsEverything(t *testing.T) {
	assert.Equal(t, Range{To: 7}, Share{}.Numbers(7))
	assert.Equal(t, Range{To: math.MaxUint64}, Share{Ranks: 1}.Numbers(math.MaxUint64))
}

func TestSharesThatDoNotExistAreRefused(t *testing.T) {
	for _, s := range []Share{{Rank: 1}, {Rank: -1}, {Rank: 3, Ranks: 3}, {Ranks: -1}} {
		require.ErrorIs(t, s.Check(), ErrOptions, "%+v", s)
	}
	for _, s := range []Share{{}, {Ranks: 1}, {Rank: 2, Ranks: 3}} {
		require.NoError(t, s.Check(), "%+v", s)
	}
}
