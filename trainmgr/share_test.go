package trainmgr

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/sdk/dataset"
)

func TestRanksShareEveryEpochWithoutGapOrOverlap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ranks := rapid.IntRange(1, 5).Draw(rt, "ranks")
		rows := int64(rapid.IntRange(1, 300).Draw(rt, "rows"))
		o := Options{Pipeline: spec(), Epochs: 2, SplitBatches: rapid.IntRange(1, 6).Draw(rt, "split"),
			Order: rapid.SampledFrom([]dataset.Order{dataset.Fastest, dataset.Deterministic}).Draw(rt, "order")}
		seen := map[int64]int{}
		for rank := range ranks {
			f := newFake(rt, rows, []int{0, 1}, []int{2})
			o.Share = dataset.Share{Rank: rank, Ranks: ranks, KeepTail: true}
			j, err := Submit(context.Background(), f, o)
			require.NoError(rt, err)
			total := j.Plan().MiniBatches()
			share := o.Share.Numbers(total)
			for mb, err := range j.MiniBatches(context.Background()) {
				require.NoError(rt, err)
				require.GreaterOrEqual(rt, mb.Name.Number, share.From)
				require.Less(rt, mb.Name.Number, share.To)
				for _, r := range mb.Values64 {
					seen[r]++
				}
			}
			require.NoError(rt, j.Close())
			require.Zero(rt, f.alive.Load())
		}
		require.Len(rt, seen, 3*int(rows))
		for r, n := range seen {
			require.Equal(rt, 2, n, "row %d was delivered %d times in two epochs", r, n)
		}
	})
}

func TestARankMakesNoMiniBatchBeyondItsShare(t *testing.T) {
	f := newFake(t, 160, []int{0}) // one split of 16 mini-batches
	j, err := Submit(t.Context(), f, Options{Pipeline: spec(), Share: dataset.Share{Rank: 1, Ranks: 4}})
	require.NoError(t, err)
	defer j.Close()
	pieces, err := j.source.Begin(t.Context(), j.epoch, pendingAll{from: 4, to: 8})
	require.NoError(t, err)
	piece, err := pieces.Next(t.Context())
	require.NoError(t, err)
	assert.Equal(t, dataset.Range{From: 4, To: 8}, piece.Numbers())
	stream, err := piece.Open(t.Context())
	require.NoError(t, err)
	made := 0
	for {
		mb, err := stream.Next(t.Context())
		if err != nil {
			break
		}
		mb.Release()
		made++
	}
	assert.Equal(t, 4, made)
	require.NoError(t, stream.Close())
	require.NoError(t, piece.End(nil))
}

// pendingAll is a Delivery in which every number of a range has still to come.
type pendingAll struct {
	Delivery
	from, to uint64
}

func (p pendingAll) Pending(from uint64) (uint64, bool) { return max(from, p.from), from < p.to }

func TestATokenOfAnotherNumberOfRanksIsRefused(t *testing.T) {
	f := newFake(t, 160, []int{0})
	o := Options{Pipeline: spec(), Order: dataset.Deterministic}
	j, err := Submit(t.Context(), f, o)
	require.NoError(t, err)
	take(t, j, 6) // acknowledges 0 to 5
	token := j.Checkpoint()
	require.NoError(t, j.Close())
	o.Resume, o.Share = &token, dataset.Share{Ranks: 2}
	j, err = Submit(t.Context(), f, o)
	require.NoError(t, err, "mini-batches 0 to 5 are of the first of two ranks")
	_, numbers := take(t, j, -1)
	assert.Equal(t, []uint64{6, 7}, numbers)
	require.NoError(t, j.Close())
	o.Share = dataset.Share{Rank: 1, Ranks: 2}
	_, err = Submit(t.Context(), f, o)
	require.ErrorIs(t, err, ErrOptions)
	require.ErrorContains(t, err, "as many ranks")
	o.Share = dataset.Share{Rank: 2, Ranks: 2}
	_, err = Submit(t.Context(), f, o)
	require.ErrorIs(t, err, ErrOptions)
}
