package ledger

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control/ledger/format"
	"github.com/millrace/millrace/control/ledger/numberset"
	"github.com/millrace/millrace/sdk/dataset"
)

// TestABrokenInvariantIsNamed breaks the state of a ledger in every way that the ledger notices. The error names what
// does not hold, nothing is written from then on, and the owner learns it.
func TestABrokenInvariantIsNamed(t *testing.T) {
	plan, names := testPlan(t, 0, dataset.Options{Batch: 1, SplitBatches: 4}, "a:40")
	across, _ := testPlan(t, 0, dataset.Options{Batch: 4, SplitBatches: 1, Boundary: dataset.BoundaryNone}, "a:6", "b:6")
	for invariant, breaks := range map[string]func(l *Ledger, e *epoch, acknowledge func(from, to uint64)) error{
		deliveredOnce: func(_ *Ledger, e *epoch, acknowledge func(from, to uint64)) error {
			e.shares[0].delivered = e.shares[0].owned
			acknowledge(9, 10)
			return nil
		},
		rowsLeft: func(_ *Ledger, e *epoch, acknowledge func(from, to uint64)) error {
			e.left[0] = 0
			acknowledge(9, 10)
			return nil
		},
		leaseInSplit: func(l *Ledger, e *epoch, _ func(from, to uint64)) error {
			r := e.job.ranks[0]
			l.startLease(&lease{Lease: Lease{ID: 77, Split: 3, From: 12, To: 17}, job: e.job, rank: r, epoch: e,
				drive: l.drives[0]})
			return nil
		},
		markDelivered: func(_ *Ledger, e *epoch, _ func(from, to uint64)) error {
			e.journal.mark, e.journal.dirtyMark = 3, true
			return nil
		},
		recordIsState: func(_ *Ledger, e *epoch, acknowledge func(from, to uint64)) error {
			acknowledge(9, 10)
			e.shares[0].partial[2] = partial{delivered: numberset.Runs{{From: 9, To: 14}}}
			return nil
		},
		stateHasRecord: func(l *Ledger, e *epoch, _ func(from, to uint64)) error {
			lost := format.Part{Split: 2, Runs: numberset.Runs{{From: 0, To: 1}}}
			return l.checkRead(e, 0, numberset.NewBits(format.ChunkSplits), []format.Part{lost})
		},
		deliveredWhole: func(l *Ledger, e *epoch, _ func(from, to uint64)) error {
			e.plan = across // Fragments 1 and 2 are of mini-batch 1.
			e.shares[0].first, e.shares[0].last = 0, 1
			e.shares[0].partial[0] = partial{delivered: numberset.Runs{{From: 0, To: 2}}}
			_, err := l.Token("x")
			return err
		},
		tokenIsCounted: func(l *Ledger, e *epoch, _ func(from, to uint64)) error {
			e.shares[0].delivered.miniBatches++
			_, err := l.Token("x")
			return err
		},
	} {
		t.Run(invariant, func(t *testing.T) {
			l := New(Config{Fence: 1})
			require.NoError(t, l.AddJob(Job{ID: "x"}))
			require.NoError(t, l.Begin(Epoch{Job: "x", Digest: digestOf("x"), Plan: plan, Partitions: names}, scriptStart))
			require.NoError(t, l.PutDrive(Drive{ID: DriveID{"n", "d"}, Streams: 2, Partitions: names}, scriptStart))
			a, err := l.Attach("x", 0, nil, scriptStart)
			require.NoError(t, err)
			acknowledge := func(from, to uint64) {
				require.NoError(t, l.Acknowledge("x", a.Session, 0, []dataset.Range{{From: from, To: to}}, scriptStart))
			}
			acknowledge(4, 6)
			require.NotEmpty(t, l.Flush(100))
			require.NoError(t, l.Broken())

			if err := breaks(l, l.job("x").epoch(0), acknowledge); err != nil {
				assert.Equal(t, err, l.Broken())
			}
			assert.Positive(t, l.Pending(), "the owner flushes soon")
			assert.Empty(t, l.Flush(100))
			var broken *InvariantError
			require.True(t, errors.As(l.Broken(), &broken), "%v", l.Broken())
			assert.Equal(t, InvariantError{"x", 0, invariant, broken.Found}, *broken)
			assert.ErrorContains(t, broken, invariant)
			assert.Positive(t, l.Pending())
		})
	}
}

// TestLostBitsAreNoticed: a split of a record that is not delivered after the record was read is noticed, too.
func TestLostBitsAreNoticed(t *testing.T) {
	plan, names := testPlan(t, 0, dataset.Options{Batch: 1, SplitBatches: 4}, "a:40")
	l := New(Config{Fence: 1})
	require.NoError(t, l.AddJob(Job{ID: "x"}))
	require.NoError(t, l.Begin(Epoch{Job: "x", Plan: plan, Partitions: names}, scriptStart))
	done := numberset.NewBits(format.ChunkSplits)
	done.Set(2)
	assert.ErrorContains(t, l.checkRead(l.job("x").epoch(0), 0, done, nil), stateHasRecord)
}
