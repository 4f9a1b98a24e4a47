package ledger

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/statediagram"
)

// TestTheLeaseTableIsWhole: every state has a row and can be reached.
func TestTheLeaseTableIsWhole(t *testing.T) {
	p := statediagram.Picture[leaseState, leaseEvent]{Table: leaseStates, Start: []leaseState{leaseWorking, leaseFetched}}
	assert.NoError(t, p.Check())
}

// TestALeaseThatIsOverStaysOver: no event changes an ended lease, and its stream is freed once.
func TestALeaseThatIsOverStaysOver(t *testing.T) {
	for _, last := range []leaseEvent{onDelivered, onReturned} {
		l := New(Config{})
		require.NoError(t, l.AddJob(Job{ID: "x"}))
		require.NoError(t, l.PutDrive(Drive{ID: DriveID{"n", "d"}, Streams: 2}, scriptStart))
		le := &lease{Lease: Lease{ID: 1}, job: l.jobs[0], rank: l.jobs[0].ranks[0], drive: l.drives[0],
			state: leaseWorking}
		l.leases[1] = le
		l.countStream(le, 1)
		for _, on := range []leaseEvent{last, onFetched, onDelivered, onReturned} {
			l.transition(le, on)
			assert.Zero(t, l.drives[0].busy)
			assert.True(t, leaseStates.Final(le.state))
			assert.False(t, le.Fetched)
			assert.Empty(t, l.leases)
		}
	}
}
