package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// ownWorker returns the status of a worker that a launcher of an owner registers; the owner of a node is empty.
func ownWorker(name, owner string) *apiv1.NodeStatus {
	s := workerAgent(name)
	s.Owner = owner
	return s
}

// TestANameHasOneOwner checks that nobody takes over the name of another owner's worker, or of a node, while it lives,
// after it has died, and after a change of leaders, and that the attempt changes nothing of what is known of the name.
func TestANameHasOneOwner(t *testing.T) {
	for _, c := range []struct{ first, second string }{{"ads", "news"}, {"ads", ""}, {"", "ads"}} {
		f := New(Options{Beat: time.Second, DeadAfter: 5 * time.Second})
		refused := func(now time.Time) {
			t.Helper()
			was := f.Status("own-w")
			for range 2 { // a second attempt is refused, too
				s := ownWorker("own-w", c.second)
				s.Incarnation, s.Urls = "another", []string{"https://another"}
				_, events, err := f.Beat(now, 1000, s)
				require.ErrorIs(t, err, ErrRefused)
				assert.ErrorContains(t, err, "give this one another name")
				assert.Empty(t, events)
			}
			assert.Same(t, was, f.Status("own-w"))
		}
		_, _, err := f.Beat(after(0), 1000, ownWorker("own-w", c.first))
		require.NoError(t, err)
		refused(after(1))
		require.True(t, f.Alive("own-w"))
		stored, ok := f.Stored("own-w")
		require.True(t, ok)
		require.Len(t, f.Tick(after(10)), 1, "it has died")
		refused(after(10))
		_, events, err := f.Beat(after(11), 1000, ownWorker("own-w", c.first))
		require.NoError(t, err, "its own owner's launchers may")
		assert.Equal(t, Joined, events[0].Kind)

		f = New(Options{})
		require.NoError(t, f.Restore(after(20), stored))
		refused(after(20))
		_, _, err = f.Beat(after(20), 1000, ownWorker("own-w", c.first))
		require.NoError(t, err)
	}
}

// TestWorkersOfOneOwnerAreBounded checks both sides of MaxOwned, and that dead workers are forgotten soon.
func TestWorkersOfOneOwnerAreBounded(t *testing.T) {
	f := New(Options{Beat: time.Second, DeadAfter: 5 * time.Second})
	_, _, err := f.Beat(after(0), 1000, ownWorker("node-0", ""))
	require.NoError(t, err)
	for i := range MaxOwned {
		_, _, err := f.Beat(after(0), 1000, ownWorker(fmt.Sprintf("own-%d", i), "ads"))
		require.NoError(t, err)
	}
	_, _, err = f.Beat(after(0), 1000, ownWorker("own-one-more", "ads"))
	require.ErrorIs(t, err, ErrRefused)
	assert.ErrorContains(t, err, "1024 workers of ads's launchers")
	for _, s := range []*apiv1.NodeStatus{ownWorker("own-other", "news"), ownWorker("node-1", ""),
		ownWorker("own-7", "ads")} {
		_, _, err = f.Beat(after(1), 1000, s)
		require.NoError(t, err, s.Name)
	}
	f.Tick(after(10)) // all have died
	f.Tick(after(0).Add(forgetOwned))
	assert.NotNil(t, f.Status("own-8"))
	f.Tick(after(1).Add(forgetOwned + time.Second))
	assert.Nil(t, f.Status("own-8"))
	assert.NotNil(t, f.Status("node-0"), "a node is listed for a day")
	_, _, err = f.Beat(after(1).Add(forgetOwned+2*time.Second), 1000, ownWorker("own-one-more", "ads"))
	assert.NoError(t, err)
}

// TestALaunchersWorkerClaimsNoDrive checks that a worker which announces the UUID of a node's drive does not keep the
// node from it, whichever comes first.
func TestALaunchersWorkerClaimsNoDrive(t *testing.T) {
	announce := func(name, owner string) *apiv1.NodeStatus {
		s := ownWorker(name, owner)
		s.Drives[0].Uuid = "the-drive"
		return s
	}
	f := New(Options{})
	_, _, err := f.Beat(after(0), 1000, announce("own-w", "ads"))
	require.NoError(t, err)
	_, _, err = f.Beat(after(0), 1000, announce("node-0", ""))
	require.NoError(t, err)
	_, _, err = f.Beat(after(1), 1000, announce("own-w", "ads"))
	assert.ErrorContains(t, err, "is node node-0's")
	_, _, err = f.Beat(after(1), 1000, announce("node-1", ""))
	assert.ErrorContains(t, err, "is node node-0's", "between nodes it holds as before")
}

// TestNoDataSetWaitsForARanksOwnWorker checks that jobs are submitted although the worker of a trainer's own CPUs has
// not said what it holds: it is starting again and again, opens its drive, or was known to an earlier leader. A node in
// the same state is waited for.
func TestNoDataSetWaitsForARanksOwnWorker(t *testing.T) {
	holder := func(f *Fleet) {
		for range 2 {
			_, _, err := f.Beat(after(0), 1000, agent(t, "n0", part(t, "p0", 100)))
			require.NoError(t, err)
		}
	}
	for name, c := range map[string]struct {
		owner  string
		serves bool
		waits  bool
	}{"a launcher's": {owner: "ads", serves: true}, "a node's for one rank": {serves: true}, "a node": {waits: true}} {
		status := func() *apiv1.NodeStatus {
			s := ownWorker("own-w", c.owner)
			if c.serves {
				s.Drives[0].Serves = &apiv1.RankName{Job: "j"}
			}
			return s
		}
		check := func(f *Fleet, when string) {
			t.Helper()
			_, err := f.Select(nil, nil)
			if c.waits {
				assert.ErrorIs(t, err, ErrNotYet, "%s: %s", name, when)
			} else {
				assert.NoError(t, err, "%s: %s", name, when)
			}
		}
		f := New(Options{})
		holder(f)
		_, _, err := f.Beat(after(0), 1000, status())
		require.NoError(t, err)
		check(f, "it has not said what it holds")
		opening := status()
		opening.Drives[0].State = "opening"
		_, _, err = f.Beat(after(0), 1000, opening)
		require.NoError(t, err)
		check(f, "it opens its drive")
		stored, ok := f.Stored("own-w")
		require.True(t, ok)
		f = New(Options{})
		holder(f)
		require.NoError(t, f.Restore(after(0), stored))
		check(f, "an earlier leader knew it")
	}
}
