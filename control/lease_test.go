package control

import (
	"context"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control/machine"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
)

// leased counts the leases on all drives.
func leased(s *Server) int {
	l := s.leading.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, d := range l.mu.machine.Ledger.Drives() {
		n += d.Leases
	}
	return n
}

// attached starts a member and a node with one drive of two streams, and attaches to a job of ten splits there.
func attached(t *testing.T) (*Server, *client, *consumer) {
	s, c := start(t, testOptions(t))
	liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 200)}})
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", Plan: &apiv1.PlanOptions{SplitBatches: 2}})
	k := attachedRank(t, c, st.Id, 0)
	return s, c, k
}

// TestAGrantWhoseAnswerIsLostIsSaidAgain: the answer to the rank's next call of any kind repeats the grant, until
// the rank names the lease.
func TestAGrantWhoseAnswerIsLostIsSaidAgain(t *testing.T) {
	t.Parallel()
	s, c, k := attached(t)
	ask := func(want int32, held ...uint64) (ids []uint64) {
		r, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.LeaseResponse,
			error) {
			return m.Lease(ctx, &apiv1.LeaseRequest{Id: k.id, Session: k.session, Want: want, WaitSeconds: 20,
				Held: held})
		})
		require.NoError(t, err)
		assert.Empty(t, r.Revoked)
		for _, g := range r.Grants {
			ids = append(ids, g.Lease)
		}
		return ids
	}
	lost := ask(1)
	require.Len(t, lost, 1)
	assert.Equal(t, lost, ask(0), "a report's answer has it too")
	assert.Equal(t, lost, ask(1), "nothing is waited for while it is not known")
	assert.Empty(t, ask(0, lost...))
	more := ask(1, lost...)
	require.Len(t, more, 1)
	assert.NotEqual(t, lost, more)
	assert.Equal(t, 2, leased(s))

	// A lease that the rank acknowledges or gives back without having named it has ended.
	_, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.ReleaseResponse,
		error) {
		return m.Release(ctx, &apiv1.ReleaseRequest{Id: k.id, Session: k.session, Leases: more, Reason: "stop"})
	})
	require.NoError(t, err)
	assert.Empty(t, ask(0, lost...))
	assert.Equal(t, 1, leased(s))
}

// TestALeaseCallThatIsGivenUpHoldsNothing: the call's want ends, and the leases that were granted for it can be
// granted to other calls.
func TestALeaseCallThatIsGivenUpHoldsNothing(t *testing.T) {
	t.Parallel()
	s, _, k := attached(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Lease(gone, &apiv1.LeaseRequest{Id: k.id, Session: k.session, Want: 1, WaitSeconds: 20})
	require.Error(t, err)
	assert.Zero(t, leased(s), "it came and was never said")

	drain := func(on bool) {
		_, err := s.DrainNode(t.Context(), &apiv1.DrainNodeRequest{Node: "n", Drain: on})
		require.NoError(t, err)
	}
	drain(true)
	waits, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.Lease(waits, &apiv1.LeaseRequest{Id: k.id, Session: k.session, Want: 1, WaitSeconds: 20})
		done <- err
	}()
	l := s.leading.Load()
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.mu.jobs[k.id].Rank(0).Withdraws(2)
	}, time.Minute, time.Millisecond)
	cancel()
	require.Error(t, <-done)
	drain(false)
	assert.Zero(t, leased(s), "nobody waits for it any more")

	// The end of an earlier call does not affect a later call that waits already.
	r, err := k.lease(1, 0, 20)
	require.NoError(t, err)
	assert.Len(t, r.Grants, 1)
}

// TestALeaseCallOfATermThatEnds: the call ends with the term, and the machine does not answer it afterwards: a call
// under the leader's lock would wait for ever.
func TestALeaseCallOfATermThatEnds(t *testing.T) {
	t.Parallel()
	s, _, k := attached(t)
	_, err := s.DrainNode(t.Context(), &apiv1.DrainNodeRequest{Node: "n", Drain: true})
	require.NoError(t, err)
	l := s.leading.Load()
	done := make(chan error, 1)
	go func() {
		_, err := s.Lease(t.Context(), &apiv1.LeaseRequest{Id: k.id, Session: k.session, Want: 1, WaitSeconds: 20})
		done <- err
	}()
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.mu.waiting) == 1
	}, time.Minute, time.Millisecond)
	l.cancel()
	assert.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(<-done))

	settled := make(chan error, 1)
	go func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		now := time.Now()
		_, err := l.mu.machine.Attach(l.mu.jobs[k.id].Job, machine.AttachRequest{Resumes: true}, now)
		l.settleLocked(now)
		settled <- err
	}()
	select {
	case err := <-settled:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		t.Fatal("the machine's effects are not carried out")
	}
}
