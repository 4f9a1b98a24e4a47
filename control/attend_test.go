package control

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control/record"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
)

// process is a launcher with connections of its own, which can be killed.
func process(t *testing.T, s *Server) (c *client, kill func()) {
	t.Helper()
	h, err := identity.HTTPClient(identity.Options{})
	require.NoError(t, err)
	t.Cleanup(h.CloseIdleConnections)
	return &client{members: []apiv1connect.ControlClient{apiv1connect.NewControlClient(h, s.URL())}},
		h.CloseIdleConnections
}

// holding starts a member, a node, and a launcher with connections of its own that holds two leases of a job of ten
// splits, which take all streams of the only drive.
func holding(t *testing.T, o Options) (s *Server, c *client, k *consumer, kill func()) {
	s, c = start(t, o)
	liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 200)}})
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", Plan: &apiv1.PlanOptions{SplitBatches: 2}})
	own, kill := process(t, s)
	k = newConsumer(t, own, st.Id, 0)
	require.NoError(t, k.attach(nil))
	for len(k.held) < 2 {
		_, err := k.lease(2, 0, 20)
		require.NoError(t, err)
	}
	require.Equal(t, 2, leased(s))
	return s, c, k, kill
}

// TestAKilledLaunchersLeasesComeBackAtOnce: when a launcher's connections are closed, its leases come back before
// they expire, and another job gets the drive.
func TestAKilledLaunchersLeasesComeBackAtOnce(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.LeaseTTL, o.SessionTTL = time.Hour, time.Hour // neither time brings the leases back
	s, c, k, kill := holding(t, o)
	rank := get(t, c, "job").Ranks[0]
	assert.True(t, rank.Attached)
	assert.Empty(t, rank.Detached)
	assert.InDelta(t, seconds(time.Now()), rank.LastContactSeconds, 60)

	other := submit(t, c, &apiv1.JobSpec{Name: "other", Plan: &apiv1.PlanOptions{SplitBatches: 2}})
	until(t, c, "other", "running")
	next := attachedRank(t, c, other.Id, 0)
	r, err := next.lease(1, 0, 0)
	require.NoError(t, err)
	require.Empty(t, r.Grants, "the drive is busy")
	kill()
	r, err = next.lease(1, 0, 20)
	require.NoError(t, err)
	assert.NotEmpty(t, r.Grants)
	rank = get(t, c, "job").Ranks[0]
	assert.False(t, rank.Attached)
	assert.Contains(t, rank.Detached, "closed its connections")
	assert.Equal(t, "running", get(t, c, "job").State, "it can be gone on with")

	// A launcher that lives after all learns which leases are gone, and continues under its session.
	r, err = k.lease(1, 0, 20)
	require.NoError(t, err)
	assert.False(t, r.UnknownSession)
	slices.Sort(r.Revoked)
	assert.Len(t, slices.Compact(r.Revoked), 2)
	assert.True(t, get(t, c, "job").Ranks[0].Attached)
	assert.Positive(t, leased(s))
}

// TestALauncherThatSaysThatItEndsHoldsNothing: all its leases come back, and it counts as detached.
func TestALauncherThatSaysThatItEndsHoldsNothing(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.LeaseTTL, o.SessionTTL = time.Hour, time.Hour
	s, c, k, _ := holding(t, o)
	_, err := callControl(t, k.c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.ReleaseResponse,
		error) {
		return m.Release(ctx, &apiv1.ReleaseRequest{Id: k.id, Session: k.session, Reason: "detach"})
	})
	require.NoError(t, err)
	assert.Zero(t, leased(s), "whether it named them or not")
	rank := get(t, c, "job").Ranks[0]
	assert.False(t, rank.Attached)
	assert.Equal(t, "its launcher has ended", rank.Detached)

	// A launcher that another launcher has fenced off detaches no rank.
	attachedRank(t, c, k.id, 0)
	_, err = callControl(t, k.c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.ReleaseResponse,
		error) {
		return m.Release(ctx, &apiv1.ReleaseRequest{Id: k.id, Session: k.session, Reason: "detach"})
	})
	assert.Equal(t, connect.CodeAborted, connect.CodeOf(err))
	assert.True(t, get(t, c, "job").Ranks[0].Attached)
}

// TestWhoAttachesAgainHasTheDriveAtOnce: a launcher that attaches gets the drive even while the rank's former
// launcher keeps its connections open.
func TestWhoAttachesAgainHasTheDriveAtOnce(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.LeaseTTL, o.SessionTTL = time.Hour, time.Hour
	s, c, k, kill := holding(t, o)
	again := attachedRank(t, c, k.id, 0)
	assert.Zero(t, leased(s))
	r, err := again.lease(2, 0, 20)
	require.NoError(t, err)
	assert.NotEmpty(t, r.Grants)
	held := leased(s)
	kill()
	r, err = again.lease(0, 0, 0)
	require.NoError(t, err)
	assert.Empty(t, r.Revoked, "that the former one ended is nothing to it")
	assert.Equal(t, held, leased(s))
}

// TestASilentLauncherIsDetached: a launcher without calls is detached although its connections are open. The test
// moves the clock.
func TestASilentLauncherIsDetached(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.LeaseTTL, o.SessionTTL = 2*time.Hour, time.Hour
	s, c, _, _ := holding(t, o)
	l := s.leading.Load()
	pass := func(d time.Duration) {
		l.mu.Lock()
		defer l.mu.Unlock()
		letPass(l, time.Now().Add(d))
	}
	pass(59 * time.Minute)
	assert.Equal(t, 2, leased(s))
	pass(61 * time.Minute)
	assert.Zero(t, leased(s))
	assert.Equal(t, "its launcher has not called for 1h0m0s", get(t, c, "job").Ranks[0].Detached)
}

// TestAnAbandonedJobEnds: a job ends when no rank has called for the time that the job, or the control plane,
// allows. The test moves the clock.
func TestAnAbandonedJobEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		operator time.Duration
		job      float64
		after    time.Duration // 0: never
	}{
		"as the operator says":         {operator: 2 * time.Hour, after: 2 * time.Hour},
		"as the job says":              {operator: 2 * time.Hour, job: 60, after: time.Minute},
		"later than the operator says": {operator: time.Hour, job: 86400, after: 24 * time.Hour},
		"by default":                   {after: DefaultAbandonAfter},
		"never":                        {operator: -1},
		"never but for this job":       {operator: -1, job: 60, after: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := testOptions(t)
			o.AbandonAfter, o.LeaseTTL, o.SessionTTL = c.operator, time.Hour, time.Hour
			s, k := start(t, o)
			n := newNode(t, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 200)}})
			n.beats(t, k)
			await(t, k, "n")
			submit(t, k, &apiv1.JobSpec{Name: "job", AbandonAfterSeconds: c.job, Ranks: 2})
			st := until(t, k, "job", "running")
			l := s.leading.Load()
			pass := func(d time.Duration) {
				l.mu.Lock()
				defer l.mu.Unlock()
				letPass(l, time.Now().Add(d))
			}
			own, _ := process(t, s)
			ranks := []*consumer{newConsumer(t, own, st.Id, 0), newConsumer(t, own, st.Id, 1)}
			for _, r := range ranks {
				require.NoError(t, r.attach(nil))
			}
			assert.Equal(t, c.after.Seconds(), get(t, k, "job").AbandonAfterSeconds)
			leave := func(r *consumer) {
				_, err := callControl(t, r.c, func(ctx context.Context,
					m apiv1connect.ControlClient) (*apiv1.ReleaseResponse, error) {
					return m.Release(ctx, &apiv1.ReleaseRequest{Id: r.id, Session: r.session, Reason: "detach"})
				})
				require.NoError(t, err)
			}
			leave(ranks[0])
			pass(30 * time.Minute)
			assert.Equal(t, "running", get(t, k, "job").State, "a rank is attached")
			leave(ranks[1])
			if c.after == 0 {
				pass(10 * 365 * 24 * time.Hour)
				assert.Equal(t, "running", get(t, k, "job").State)
				return
			}
			pass(c.after - time.Second)
			assert.Equal(t, "running", get(t, k, "job").State)
			require.NoError(t, ranks[0].attach(nil)) // the time begins again
			leave(ranks[0])
			pass(c.after + time.Minute)
			st = get(t, k, "job")
			assert.True(t, strings.HasPrefix(st.State, "abandoned: no rank has called since "), st.State)
			err := ranks[0].attach(nil)
			assert.Equal(t, connect.CodeAborted, connect.CodeOf(err))
			assert.ErrorContains(t, err, "abandoned")
			submit(t, k, &apiv1.JobSpec{Name: "job", Epochs: 2}) // its name is free
			_, err = checkpointOf(t, k, st.Id)
			assert.NoError(t, err, "whoever comes back can go on")
		})
	}
}

// checkpointOf returns the token of a whole job.
func checkpointOf(t *testing.T, c *client, id string) ([]byte, error) {
	r, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.CheckpointResponse,
		error) {
		return m.Checkpoint(ctx, &apiv1.CheckpointRequest{Id: id})
	})
	return r.GetToken(), err
}

// TestAnAbandonedJobCanBeGoneOnWith: the job's token contains the acknowledged mini-batches, and another job that
// resumes from the token delivers the rest.
func TestAnAbandonedJobCanBeGoneOnWith(t *testing.T) {
	t.Parallel()
	s, c, k := attached(t)
	require.NoError(t, k.consume(3))
	had := len(k.got)
	l := s.leading.Load()
	l.mu.Lock()
	letPass(l, time.Now().Add(1000*time.Hour))
	l.mu.Unlock()
	require.Eventually(t, func() bool { return strings.HasPrefix(get(t, c, k.id).State, "abandoned") }, time.Minute,
		time.Millisecond)
	token, err := checkpointOf(t, c, k.id)
	require.NoError(t, err)
	st := submit(t, c, &apiv1.JobSpec{Name: "rest", Plan: &apiv1.PlanOptions{SplitBatches: 2}, Resume: token})
	until(t, c, "rest", "running")
	rest := attachedRank(t, c, st.Id, 0)
	require.NoError(t, rest.consume(0))
	assert.Len(t, rest.got, 20-had)
	for name := range k.got {
		assert.NotContains(t, rest.got, name)
	}
	_, err = callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.CheckpointResponse,
		error) {
		return m.Checkpoint(ctx, &apiv1.CheckpointRequest{Id: k.id, Session: k.session})
	})
	assert.Equal(t, connect.CodeAborted, connect.CodeOf(err), "of a rank there is none any more")
}

// TestAbandonmentOutlivesALeader: the time of the last call is stored. If no launcher had called before, the time
// counts from the leader's beginning.
func TestAbandonmentOutlivesALeader(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.AbandonAfter, o.AttachWithin = time.Hour, -1
	s, err := Start(patient(t), o)
	require.NoError(t, err)
	require.Eventually(t, s.Leads, time.Minute, time.Millisecond)
	c := newClient(s)
	n := newNode(t, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 200)}})
	stop := n.beats(t, c)
	await(t, c, "n")
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job"})
	l := s.leading.Load()
	since := time.Now().Add(-50 * time.Minute).UTC()
	l.mu.Lock()
	j := l.mu.jobs[st.Id]
	j.Called(0, 0, since)
	letPass(l, time.Now().Add(2*time.Second))
	require.True(t, since.Equal(j.State().Unattended))
	l.mu.Unlock()
	require.NoError(t, l.storeState(t.Context(), j))
	stop()
	require.NoError(t, s.Close())

	s, c = start(t, o)
	l = s.leading.Load()
	l.mu.Lock()
	j = l.mu.jobs[st.Id]
	letPass(l, time.Now().Add(9*time.Minute))
	before := j.Phase()
	letPass(l, time.Now().Add(11*time.Minute))
	after, unattended := j.Phase(), j.State().Unattended
	l.mu.Unlock()
	assert.Equal(t, record.Running, before)
	assert.Equal(t, record.Abandoned, after)
	assert.True(t, since.Equal(unattended))
	assert.True(t, strings.HasPrefix(get(t, c, st.Id).State, "abandoned"))
}

// TestAJobThatIsDeliveredIsNotAbandoned: the job ends by itself as done.
func TestAJobThatIsDeliveredIsNotAbandoned(t *testing.T) {
	t.Parallel()
	s, c, k := attached(t)
	k.stays = true
	require.NoError(t, k.attach(nil))
	require.NoError(t, k.consume(0))
	l := s.leading.Load()
	require.Eventually(t, func() bool { return strings.HasPrefix(get(t, c, k.id).State, "waiting: every mini-batch") },
		time.Minute, time.Millisecond)
	l.mu.Lock()
	letPass(l, time.Now().Add(1000*time.Hour))
	at := l.mu.jobs[k.id].Phase()
	l.mu.Unlock()
	assert.Equal(t, record.Waiting, at)
}

// TestConnectionsAreKnownWhileTheyAreOpen: a closed connection has no number.
func TestConnectionsAreKnownWhileTheyAreOpen(t *testing.T) {
	t.Parallel()
	s, _ := start(t, testOptions(t))
	open := func() (n int) {
		s.connections.open.Range(func(any, any) bool { n++; return true })
		return n
	}
	c, kill := process(t, s)
	_, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.ListJobsResponse,
		error) {
		return m.ListJobs(ctx, &apiv1.ListJobsRequest{})
	})
	require.NoError(t, err)
	assert.Positive(t, open())
	kill()
	require.Eventually(t, func() bool { return open() == 0 }, time.Minute, time.Millisecond)
	conn, other := net.Pipe()
	defer func() { require.NoError(t, errors.Join(conn.Close(), other.Close())) }()
	ctx := s.connections.opened(t.Context(), conn)
	n := s.connections.of(ctx)
	assert.NotZero(t, n)
	at, ok := s.connections.closed(conn, http.StateClosed)
	assert.True(t, ok)
	assert.Equal(t, n, at)
	assert.Zero(t, s.connections.of(ctx), "a call that outlives its connection")
	_, ok = s.connections.closed(conn, http.StateClosed)
	assert.False(t, ok)
	assert.Zero(t, s.connections.of(t.Context()))
}
