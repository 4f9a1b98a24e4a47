package dataset

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestGroupPartsAreTheSplits compares the parts of row groups, and the number of short mini-batches, with those found
// row by row and mini-batch by mini-batch, with both boundaries and in every order of the splits.
func TestGroupPartsAreTheSplits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, o := drawSequence(t)
		o.Boundary = Boundary(rapid.IntRange(0, 1).Draw(t, "boundary"))
		p, err := NewPlan(m, o)
		require.NoError(t, err)
		var want, got []GroupPart
		for s := range p.All() {
			row := int64(0)
			for g, rows := range m.Partitions[s.Partition].RowGroups {
				if from, to := max(row, s.First), min(row+rows, s.First+s.Rows); from < to {
					want = append(want, GroupPart{Partition: s.Partition, Group: g, First: from - row, Rows: to - from, Of: rows})
				}
				row += rows
			}
		}
		for part := range p.GroupParts(m) {
			got = append(got, part)
			require.Equal(t, part.First == 0 && part.Rows == m.Partitions[part.Partition].RowGroups[part.Group],
				part.IsWhole())
		}
		require.Equal(t, want, got)
		for range p.GroupParts(m) {
			break
		}
		short := uint64(0)
		for i := range p.MiniBatches() {
			mb, err := p.MiniBatch(i)
			require.NoError(t, err)
			if mb.Rows < p.Options().Batch {
				short++
			}
		}
		require.Equal(t, short, p.ShortMiniBatches())
	})
}
