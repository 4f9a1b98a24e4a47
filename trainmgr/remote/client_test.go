package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/trainmgr/remote/protocol"
)

// follower is a member that does not lead.
type follower struct {
	apiv1connect.UnimplementedControlHandler
	leader string
	asked  atomic.Int64
}

func (f *follower) ListJobs(context.Context, *apiv1.ListJobsRequest) (*apiv1.ListJobsResponse, error) {
	f.asked.Add(1)
	err := connect.NewError(connect.CodeFailedPrecondition, errors.New("this member does not lead"))
	d, derr := connect.NewErrorDetail(&apiv1.NotLeader{LeaderUrl: f.leader})
	if derr != nil {
		return nil, derr
	}
	err.AddDetail(d)
	return nil, err
}

func newFollower(t *testing.T, leader string) (*follower, string) {
	f := &follower{leader: leader}
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewControlHandler(f))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return f, s.URL
}

// deadURL is an address on which no process listens.
func deadURL(t *testing.T) string {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	return s.URL
}

func TestTheLeaderIsFound(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 10, batch: 10, split: 1})
	_, lost := newFollower(t, "")
	bad, wrong := newFollower(t, "ftp://nowhere")
	knowing, named := newFollower(t, c.http.URL)
	for name, urls := range map[string][]string{
		"it is named, though not configured": {named},
		"nobody is named, it is next":        {lost, c.http.URL},
		"the first is dead":                  {deadURL(t), c.http.URL},
		"what is named cannot be called":     {wrong, c.http.URL},
		"a chain of them":                    {deadURL(t), lost, named},
	} {
		t.Run(name, func(t *testing.T) {
			client := c.dial(t, urls...)
			before := knowing.asked.Load()
			for range 3 {
				jobs, err := client.List(t.Context())
				require.NoError(t, err)
				require.Len(t, jobs, 1)
			}
			assert.LessOrEqual(t, knowing.asked.Load()-before, int64(1), "who leads is remembered")
		})
	}
	assert.Positive(t, bad.asked.Load())
}

func TestMembersThatPointAtEachOtherEndThePatience(t *testing.T) {
	a, one := newFollower(t, "")
	b, two := newFollower(t, one)
	a.leader = two
	client, err := Dial(Options{Control: []string{one, two}, Patience: 300 * time.Millisecond})
	require.NoError(t, err)
	_, err = client.List(t.Context())
	require.ErrorIs(t, err, ErrUnreachable)
	assert.ErrorContains(t, err, "does not lead")
	assert.Less(t, a.asked.Load()+b.asked.Load(), int64(60), "it pauses between rounds")
}

func TestWhatIsAskedAgain(t *testing.T) {
	for _, c := range []struct {
		code  connect.Code
		lasts bool // the error has the detail LimitReached
		again bool
	}{
		{connect.CodeUnavailable, false, true}, {connect.CodeDeadlineExceeded, false, true},
		{connect.CodeResourceExhausted, false, true}, {connect.CodeResourceExhausted, true, false},
		{connect.CodeCanceled, false, true},
		{connect.CodeInvalidArgument, false, false}, {connect.CodeNotFound, false, false},
		{connect.CodeInternal, false, false}, {connect.CodePermissionDenied, false, false},
		{connect.CodeFailedPrecondition, false, false},
	} {
		t.Run(fmt.Sprintf("%v, lasts %t", c.code, c.lasts), func(t *testing.T) {
			cl := newCluster(t, clusterOptions{rows: 10, batch: 10, split: 1})
			refusals := 2
			cl.before = func(string) error {
				if refusals--; refusals < 0 {
					return nil
				}
				err := connect.NewError(c.code, errors.New("no"))
				if c.lasts {
					detail, detailErr := connect.NewErrorDetail(&apiv1.LimitReached{})
					assert.NoError(t, detailErr)
					err.AddDetail(detail)
				}
				return err
			}
			_, err := cl.dial(t).List(t.Context())
			if c.again {
				require.NoError(t, err)
				require.Equal(t, 3, cl.calls["ListJobs"])
				return
			}
			require.Equal(t, c.code, connect.CodeOf(err))
			require.Equal(t, 1, cl.calls["ListJobs"])
			assert.Equal(t, c.code == connect.CodeNotFound, errors.Is(err, ErrNoJob))
		})
	}
}

// TestALeaderThatIsBusyAnswers: a leader that refuses a call as often as it is asked is not called unreachable.
func TestALeaderThatIsBusyAnswers(t *testing.T) {
	cl := newCluster(t, clusterOptions{rows: 10, batch: 10, split: 1})
	cl.before = func(string) error {
		return connect.NewError(connect.CodeResourceExhausted, errors.New("more than 7 requests a second"))
	}
	c, err := Dial(Options{Control: []string{cl.http.URL}, Patience: 200 * time.Millisecond})
	require.NoError(t, err)
	_, err = c.List(t.Context())
	assert.ErrorContains(t, err, "more than 7 requests a second")
	assert.NotErrorIs(t, err, ErrUnreachable)
}

// TestAttachWaitsForAsLongAsItTakes: a launcher does not lose its patience while rows are selected or other jobs hold
// the room that its job needs. It does while the job is only said not to be ready.
func TestAttachWaitsForAsLongAsItTakes(t *testing.T) {
	for words, waits := range map[string]bool{
		"preparing: rows are selected: 1 of 2 tested": true, "waiting: for room held by a-1: node n": true,
		"measuring": false,
	} {
		t.Run(words, func(t *testing.T) {
			cl := newCluster(t, clusterOptions{rows: 10, batch: 10, split: 1})
			refusals := 3
			cl.before = func(call string) error {
				if refusals--; call == "Attach" && refusals >= 0 {
					return connect.NewError(connect.CodeUnavailable, errors.New("job j is "+words))
				}
				return nil
			}
			client := cl.dial(t)
			client.members = protocol.NewMembers(client.members.Configured(), time.Nanosecond, time.Nanosecond)
			job, err := client.Attach(t.Context(), "job", AttachOptions{})
			if !waits {
				require.ErrorIs(t, err, ErrUnreachable)
				return
			}
			require.NoError(t, err)
			client.members = protocol.NewMembers(client.members.Configured(), 20*time.Second, 20*time.Second)
			require.NoError(t, job.Close())
		})
	}
}

func TestACallerThatGivesUpIsNotKept(t *testing.T) {
	client, err := Dial(Options{Control: []string{deadURL(t)}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the trainer was told to stop")
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	_, err = client.Get(ctx, "x")
	require.ErrorIs(t, err, why)
}

func TestSubmitIsSafeToRepeat(t *testing.T) {
	spec := &apiv1.JobSpec{Name: "ads", Pipeline: []byte("name: t")}
	t.Run("the answer was lost", func(t *testing.T) {
		c := newCluster(t, clusterOptions{rows: 10, batch: 10, split: 1})
		c.notFirst = true
		st, err := c.dial(t).Submit(t.Context(), spec)
		require.NoError(t, err)
		require.Equal(t, "j1", st.Id)
		require.Equal(t, 2, c.submits)
	})
	t.Run("somebody else's job has the name", func(t *testing.T) {
		c := newCluster(t, clusterOptions{rows: 10, batch: 10, split: 1})
		c.submits = 1
		_, err := c.dial(t).Submit(t.Context(), spec)
		require.Equal(t, connect.CodeAlreadyExists, connect.CodeOf(err))
	})
	t.Run("a job with other partitions has the name, and the first member leads no more", func(t *testing.T) {
		c := newCluster(t, clusterOptions{rows: 10, batch: 10, split: 1})
		c.submits = 1
		c.before = func(call string) error {
			if c.calls[call] == 1 {
				return connect.NewError(connect.CodeUnavailable, errors.New("I lead no more"))
			}
			return nil
		}
		_, err := c.dial(t).Submit(t.Context(), &apiv1.JobSpec{Name: c.spec.Name, Pipeline: c.spec.Pipeline,
			Partitions: []string{"others/*"}})
		require.Equal(t, connect.CodeAlreadyExists, connect.CodeOf(err))
		require.Equal(t, 2, c.calls["SubmitJob"])
	})
	t.Run("a job without a name gets one", func(t *testing.T) {
		c := newCluster(t, clusterOptions{rows: 10, batch: 10, split: 1})
		st, err := c.dial(t).Submit(t.Context(), &apiv1.JobSpec{Pipeline: []byte("name: t")})
		require.NoError(t, err)
		require.Regexp(t, `^job-[0-9a-f]{12}$`, st.Spec.Name)
	})
	_, err := newCluster(t, clusterOptions{rows: 10, batch: 10, split: 1}).dial(t).Submit(t.Context(), nil)
	require.ErrorIs(t, err, ErrOptions)
}

// TestAControlPlaneThatPassesOverFields submits jobs with fields to a control plane that passes over them, and to one
// that knows them.
func TestAControlPlaneThatPassesOverFields(t *testing.T) {
	for says, asked := range map[string]*apiv1.JobSpec{
		"older than the boundary none": {Plan: &apiv1.PlanOptions{Boundary: "none"}},
		"older than follow_once":       {Plan: &apiv1.PlanOptions{}, Follow: true, FollowOnce: true},
	} {
		asked.Name, asked.Pipeline = "ads", []byte("name: t")
		for _, knows := range []bool{false, true} {
			c := newCluster(t, clusterOptions{rows: 10, batch: 10, split: 1})
			if knows {
				c.spec.Plan.Boundary, c.spec.FollowOnce = asked.Plan.Boundary, asked.FollowOnce
			}
			_, err := c.dial(t).Submit(t.Context(), asked)
			if knows {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, says)
				require.ErrorContains(t, err, "upgrade the control plane")
			}
		}
	}
}

func TestWatchGoesOnOverAChangeOfTheLeader(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 10, batch: 10, split: 1})
	n := 0
	c.before = func(string) error {
		if n++; n == 3 {
			return connect.NewError(connect.CodeUnavailable, errors.New("I lead no more"))
		}
		return nil
	}
	var seen []uint64
	for st, err := range c.dial(t).Watch(t.Context(), "j1") {
		require.NoError(t, err)
		seen = append(seen, st.Delivered)
	}
	require.Equal(t, []uint64{0, 1, 0, 1, 2}, seen)
	c.before = func(string) error { return connect.NewError(connect.CodeNotFound, errors.New("gone")) }
	for _, err := range c.dial(t).Watch(t.Context(), "j1") {
		require.ErrorIs(t, err, ErrNoJob)
	}
}

// TestWatchPausesBeforeItAsksAgain ends every stream after its first message. The pauses between the streams grow.
func TestWatchPausesBeforeItAsksAgain(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 10, batch: 10, split: 1})
	var calls atomic.Int64
	c.before = func(string) error {
		if calls.Add(1)%2 == 0 {
			return connect.NewError(connect.CodeUnavailable, errors.New("I lead no more"))
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	streams, begin := 0, time.Now()
	for _, err := range c.dial(t).Watch(ctx, "j1") {
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
			break
		}
		if streams++; streams == 5 {
			cancel()
		}
	}
	require.Equal(t, 5, streams)
	require.GreaterOrEqual(t, time.Since(begin), (1+2+4+8)*protocol.FirstPause/2)
}

func TestDrainingAnUnknownNodeIsAboutNoJob(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 10, batch: 10, split: 1})
	c.before = func(string) error {
		return connect.NewError(connect.CodeNotFound, errors.New("fleet: unknown: node x"))
	}
	_, err := c.dial(t).Drain(t.Context(), "x", true)
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
	require.ErrorContains(t, err, "unknown: node x")
	require.NotErrorIs(t, err, ErrNoJob)
}

func TestDialRefuses(t *testing.T) {
	for name, o := range map[string]Options{
		"nobody": {}, "no scheme": {Control: []string{"control:7460"}}, "no patience": {Control: []string{"http://c:1"},
			Patience: -1},
		"a path": {Control: []string{"http://c:1/x"}},
	} {
		_, err := Dial(o)
		require.ErrorIs(t, err, ErrOptions, name)
	}
}
