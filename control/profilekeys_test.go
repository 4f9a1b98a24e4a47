package control

import (
	"context"
	"math"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
)

// TestKeysOfAProfile: the keys are the same at every attachment, and each of them changes with what it names: the
// rank's own worker, another worker, a kind of drive. A job whose share is fixed has none.
func TestKeysOfAProfile(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	st, k := attachToJob(t, c, &apiv1.JobSpec{Name: "job", Offload: "extended"})
	keys := func() *apiv1.ProfileKeys {
		t.Helper()
		r, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.AttachResponse, error) {
			return m.Attach(ctx, &apiv1.AttachRequest{Id: k.id, Run: k.run})
		})
		require.NoError(t, err)
		return r.ProfileKeys
	}
	alone := keys()
	require.Len(t, alone.Pipeline, 32)
	require.Len(t, alone.OtherWorkers, 32)
	assert.Empty(t, alone.OwnWorkers)
	assert.True(t, proto.Equal(alone, keys()))
	changes := func(what string, before *apiv1.ProfileKeys, same func(after *apiv1.ProfileKeys) bool) *apiv1.ProfileKeys {
		t.Helper()
		var after *apiv1.ProfileKeys
		require.Eventually(t, func() bool {
			after = keys()
			return !proto.Equal(before, after)
		}, time.Minute, 5*time.Millisecond, what)
		assert.True(t, same(after), "%s: %v, and before %v", what, after, before)
		return after
	}
	own := newWorker(t, "own")
	own.set(func(s *apiv1.NodeStatus) { s.Drives[0].Serves = &apiv1.RankName{Job: st.Id} })
	own.beats(t, c)
	served := changes("the rank has a worker", alone, func(after *apiv1.ProfileKeys) bool {
		return len(after.OwnWorkers) == 32 && string(after.OtherWorkers) == string(alone.OtherWorkers)
	})
	own.set(func(s *apiv1.NodeStatus) { s.Drives[0].Threads = 7 })
	faster := changes("the worker has more threads", served, func(after *apiv1.ProfileKeys) bool {
		return string(after.OtherWorkers) == string(alone.OtherWorkers)
	})
	pool := newWorker(t, "pool")
	stop := pool.beats(t, c)
	changes("another worker", faster, func(after *apiv1.ProfileKeys) bool {
		return string(after.OwnWorkers) == string(faster.OwnWorkers) && string(after.Pipeline) == string(alone.Pipeline)
	})
	stop()
	require.Eventually(t, func() bool { return proto.Equal(faster, keys()) }, time.Minute, 5*time.Millisecond,
		"the worker has gone")
	// A worker of the same kind and another name is the same key.
	pool, twin := newWorker(t, "pool2"), newWorker(t, "twin")
	stop = pool.beats(t, c)
	with := changes("a worker again", faster, func(*apiv1.ProfileKeys) bool { return true })
	stop()
	twin.beats(t, c)
	require.Eventually(t, func() bool { return proto.Equal(with, keys()) }, time.Minute, 5*time.Millisecond, "a twin")

	fixed := submit(t, c, &apiv1.JobSpec{Name: "fixed", Offload: "0.5"})
	k = newConsumer(t, c, fixed.Id, 0)
	require.Eventually(t, func() bool { return k.attach(nil) == nil }, time.Minute, 10*time.Millisecond)
	assert.Nil(t, keys())
}

// TestTheCostOfAProfile: the status has the share of the training time that a rank's profile took, also when a report
// does not mention it, and until another run attaches. Times that can never be right are refused.
func TestTheCostOfAProfile(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	_, k := attachToJob(t, c, &apiv1.JobSpec{Name: "job", Offload: "extended"})
	report := func(r *apiv1.RankReport) error {
		_, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.LeaseResponse, error) {
			return m.Lease(ctx, &apiv1.LeaseRequest{Id: k.id, Session: k.session, Report: r})
		})
		return err
	}
	k.run = "a run"
	require.NoError(t, k.attach(nil))
	require.NoError(t, report(&apiv1.RankReport{ProfileFrom: apiv1.ProfileMeasured, ProfileSeconds: 3,
		TrainingSeconds: 60}))
	check := func(from string, seconds, share float64) {
		t.Helper()
		r := get(t, c, "job").Ranks[0]
		assert.Equal(t, from, r.ProfileFrom)
		assert.InDelta(t, seconds, r.ProfileSeconds, 0)
		assert.InDelta(t, share, r.ProfileShare, 1e-12)
	}
	check("measured", 3, 0.05)
	require.NoError(t, report(&apiv1.RankReport{}))
	check("measured", 3, 0.05)
	require.NoError(t, k.attach(nil))
	check("measured", 3, 0.05)
	require.NoError(t, report(&apiv1.RankReport{ProfileFrom: apiv1.ProfileStored, ProfileSeconds: 3, TrainingSeconds: 2}))
	check("stored", 3, 1)
	for _, r := range []*apiv1.RankReport{{ProfileFrom: "guessed"}, {ProfileSeconds: -1}, {TrainingSeconds: math.NaN()},
		{ProfileSeconds: math.Inf(1)}, {TrainingSeconds: math.Inf(1)}} {
		assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(report(r)), "%v", r)
	}
	k.run = "another run"
	require.NoError(t, k.attach(nil))
	check("", 0, 0)
}
