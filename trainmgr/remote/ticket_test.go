package remote

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/tensor"
)

// TestTicketsAreShownAndRenewed: every request has its lease's, which the fake nodes of all tests demand; and the one
// that came last.
func TestTicketsAreShownAndRenewed(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 640, batch: 10, split: 64})
	j := c.attach(t, c.dial(t), AttachOptions{QueueBytes: 1000}) // far less than the lease has
	renewed := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.renewed
	}
	n := 0
	require.NoError(t, take(t, c, j, 64, func(*tensor.MiniBatch) {
		if n++; n != 4 {
			return
		}
		c.mu.Lock()
		c.issue = 1
		c.mu.Unlock()
		// Two goroutines call, so of three answers at least one was taken in by a goroutine that called again.
		require.Eventually(t, func() bool { return renewed() >= 3 }, time.Minute, time.Millisecond)
	}).err)
	require.NoError(t, j.Close())
	c.mu.Lock()
	assert.NotContains(t, c.reasons, "node", "nothing was refused")
	assert.EqualValues(t, 1, c.lease, "it is all one lease")
	c.mu.Unlock()
	node := c.nodes[0]
	node.mu.Lock()
	defer node.mu.Unlock()
	assert.Positive(t, node.issues[0])
	assert.Positive(t, node.issues[1])
	assert.Equal(t, 64, node.issues[0]+node.issues[1])
}
