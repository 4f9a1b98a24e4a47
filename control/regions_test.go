package control

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// TestRegionsAreMeasuredTogether: the regions of a drive are measured at once, since they share its flash, and drives
// of a node one after the other. T/P counts regions as it counts drives.
func TestRegionsAreMeasuredTogether(t *testing.T) {
	t.Parallel()
	s, c := start(t, testOptions(t))
	held := []*apiv1.Partition{partition(t, "p0", 1000)}
	n := newNode(t, "n", map[string][]*apiv1.Partition{"a0": held, "a1": held, "b0": held, "b1": held})
	n.set(func(s *apiv1.NodeStatus) {
		for i, d := range s.Drives {
			d.Uuid, d.Region, d.Regions = "drive-"+d.Name[:1], uint32(i%2), 2
		}
	})
	n.hang = make(chan struct{})
	for _, d := range []string{"a0", "a1", "b0", "b1"} {
		n.p[d] = 500
	}
	n.beats(t, c)
	await(t, c, "n")
	submit(t, c, &apiv1.JobSpec{Name: "job", TRowsPerSecond: 1400})
	measures := func() int {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.measures
	}
	for measured := 2; measured <= 4; measured += 2 {
		require.Eventually(t, func() bool { return measures() >= measured }, time.Minute, time.Millisecond,
			"both regions of a drive")
		assert.Equal(t, measured, measures(), "and no other drive meanwhile")
		n.hang <- struct{}{}
		n.hang <- struct{}{}
	}
	st := until(t, c, "job", "running")
	assert.InDelta(t, 500, st.PRowsPerSecond, 1)
	assert.EqualValues(t, 3, st.DrivesWanted)
	drives := nodeRecord(t, s, "n").Status.Drives
	require.Len(t, drives, 4)
	assert.Equal(t, drives[0].Uuid, drives[1].Uuid)
	assert.EqualValues(t, 1, drives[1].Region)
	assert.EqualValues(t, 2, drives[1].Regions)
}
