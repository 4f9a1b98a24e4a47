package upkeep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/dataset"
)

// TestAHeartbeatWithoutNewsAsksForNoJobs counts how often the keeper has all jobs described: not for a heartbeat that
// reports what the one before did, and once for one that reports something else.
func TestAHeartbeatWithoutNewsAsksForNoJobs(t *testing.T) {
	asked, now, manifest := 0, time.Time{}, &dataset.Manifest{}
	d := dataset.Digest{1}
	k := New(Config{
		Jobs: func() []Job {
			asked++
			return []Job{{ID: "x", Editions: []Edition{{d, manifest, true, false}}}}
		},
		Holds: func(string, *dataset.Manifest) bool { return true },
	})
	r := Report{Node: "n", Incarnation: "1"}
	k.Joined(r)
	k.Renewed("n")
	effects := k.Ready(now)
	require.Len(t, effects, 1)
	k.Prepared(effects[0].(Prepare), Result{Outcome: Done}, now)
	r.Jobs = []dataset.Digest{d}
	k.Reported(r) // It lists the edition for the first time.
	k.Ready(now)
	asked = 0
	for range 100 {
		k.Reported(r)
		now = now.Add(time.Second)
		k.Tick(now)
		require.Empty(t, k.Ready(now))
	}
	assert.Zero(t, asked)
	r.Jobs = nil
	k.Reported(r)
	require.NotEmpty(t, k.Ready(now))
	assert.Equal(t, 1, asked, "the node has lost the edition")
}
