package control

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
)

// authority issues identities for one test.
type authority struct {
	t   *testing.T
	dir string
}

func newAuthority(t *testing.T) authority {
	a := authority{t, t.TempDir()}
	require.NoError(t, identity.InitAuthority(a.dir, "test"))
	return a
}

func (a authority) issue(role identity.Role, name string) identity.Options {
	a.t.Helper()
	o := identity.Options{Cert: filepath.Join(a.dir, name+".pem"), Key: filepath.Join(a.dir, name+".key"),
		CA: filepath.Join(a.dir, identity.AuthorityCert)}
	require.NoError(a.t, identity.Issue(a.dir, identity.Request{Identity: identity.Identity{Role: role, Name: name},
		Hosts: []string{"127.0.0.1", "localhost"}}, o.Cert, o.Key))
	return o
}

func (a authority) client(s *Server, role identity.Role, name string) apiv1connect.ControlClient {
	a.t.Helper()
	h, err := identity.HTTPClient(a.issue(role, name))
	require.NoError(a.t, err)
	a.t.Cleanup(h.CloseIdleConnections)
	return apiv1connect.NewControlClient(h, s.URL())
}

// TestRolesAreChecked: each role may make its own calls, and a job belongs to its launcher.
func TestRolesAreChecked(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	o := testOptions(t)
	o.Identity = a.issue(identity.Control, "m0")
	o.DeadAfter = time.Minute // the node beats twice, and its data are needed until the end
	s, err := Start(patient(t), o)
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	require.Eventually(t, s.Leads, time.Minute, time.Millisecond)
	ctx := patient(t)
	ads := a.client(s, identity.Launcher, "ads.host-0")
	sibling := a.client(s, identity.Launcher, "ads.host-1")
	stranger := a.client(s, identity.Launcher, "news")
	operator := a.client(s, identity.Operator, "ops")
	node := a.client(s, identity.Node, "n")

	denied := func(err error, what string) {
		t.Helper()
		assert.Equal(t, connect.CodePermissionDenied, connect.CodeOf(err), "%s: %v", what, err)
	}
	_, err = ads.Heartbeat(ctx, &apiv1.HeartbeatRequest{Status: &apiv1.NodeStatus{Name: "n"}})
	denied(err, "a launcher beats for a node")
	_, err = node.SubmitJob(ctx, &apiv1.SubmitJobRequest{})
	denied(err, "a node submits")
	_, err = ads.DrainNode(ctx, &apiv1.DrainNodeRequest{})
	denied(err, "a launcher drains")
	n := newNode(t, "other", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 100)}})
	_, err = node.Heartbeat(ctx, &apiv1.HeartbeatRequest{Status: n.status})
	denied(err, "a node beats for another")
	assert.ErrorContains(t, err, "node n beats for node \"other\"")

	n = newNode(t, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 100)}})
	for range 2 {
		_, err = node.Heartbeat(ctx, &apiv1.HeartbeatRequest{Status: n.status})
		require.NoError(t, err)
	}
	// The node is an HTTP server without a certificate here; the job need not come to run.
	r, err := ads.SubmitJob(ctx, &apiv1.SubmitJobRequest{Spec: &apiv1.JobSpec{Name: "job",
		Pipeline: []byte(testPipeline)}})
	require.NoError(t, err)
	for name, k := range map[string]apiv1connect.ControlClient{"its launcher": ads,
		"the same trainer on another host": sibling, "an operator": operator} {
		_, err := k.GetJob(ctx, &apiv1.GetJobRequest{Id: r.Job.Id})
		assert.NoError(t, err, name)
		list, err := k.ListJobs(ctx, &apiv1.ListJobsRequest{})
		require.NoError(t, err)
		assert.Len(t, list.Jobs, 1, name)
	}
	_, err = stranger.GetJob(ctx, &apiv1.GetJobRequest{Id: r.Job.Id})
	denied(err, "another launcher looks")
	_, err = stranger.CancelJob(ctx, &apiv1.CancelJobRequest{Id: r.Job.Id})
	denied(err, "another launcher cancels")
	_, err = stranger.Attach(ctx, &apiv1.AttachRequest{Id: r.Job.Id})
	denied(err, "another launcher attaches")
	list, err := stranger.ListJobs(ctx, &apiv1.ListJobsRequest{})
	require.NoError(t, err)
	assert.Empty(t, list.Jobs)

	// Every launcher may use an operator's job, and no launcher may end it. A job that an operator submits for a
	// launcher belongs to that launcher.
	open, err := operator.SubmitJob(ctx, &apiv1.SubmitJobRequest{Spec: &apiv1.JobSpec{Name: "open",
		Pipeline: []byte(testPipeline)}})
	require.NoError(t, err)
	_, err = stranger.GetJob(ctx, &apiv1.GetJobRequest{Id: open.Job.Id})
	assert.NoError(t, err)
	_, err = stranger.CancelJob(ctx, &apiv1.CancelJobRequest{Id: open.Job.Id})
	denied(err, "a launcher cancels an operator's job")
	assert.ErrorContains(t, err, "an operator's: ask one")
	_, err = stranger.SubmitJob(ctx, &apiv1.SubmitJobRequest{Spec: &apiv1.JobSpec{Name: "theirs",
		Pipeline: []byte(testPipeline)}, Owner: "ads"})
	denied(err, "a launcher submits for another")
	given, err := operator.SubmitJob(ctx, &apiv1.SubmitJobRequest{Spec: &apiv1.JobSpec{Name: "given",
		Pipeline: []byte(testPipeline)}, Owner: "ads"})
	require.NoError(t, err)
	assert.Equal(t, "ads", given.Job.Owner)
	_, err = stranger.GetJob(ctx, &apiv1.GetJobRequest{Id: given.Job.Id})
	denied(err, "another launcher looks at what was given to ads")
	_, err = stranger.SubmitJob(ctx, &apiv1.SubmitJobRequest{Spec: &apiv1.JobSpec{Name: "given",
		Pipeline: []byte(testPipeline)}})
	assert.Equal(t, connect.CodeAlreadyExists, connect.CodeOf(err))
	assert.NotContains(t, err.Error(), given.Job.Id)
	_, err = sibling.CancelJob(ctx, &apiv1.CancelJobRequest{Id: given.Job.Id})
	assert.NoError(t, err, "its launcher on another host")
	_, err = operator.CancelJob(ctx, &apiv1.CancelJobRequest{Id: open.Job.Id})
	assert.NoError(t, err)

	// A caller without a certificate, or with another authority's certificate, is refused.
	_, err = apiv1connect.NewControlClient(http.DefaultClient, s.URL()).ListJobs(ctx, &apiv1.ListJobsRequest{})
	assert.Error(t, err)
	_, err = newAuthority(t).client(s, identity.Operator, "ops").ListJobs(ctx, &apiv1.ListJobsRequest{})
	assert.Error(t, err)

	get := func(role identity.Role, name, path string) int {
		h, err := identity.HTTPClient(a.issue(role, name))
		require.NoError(t, err)
		defer h.CloseIdleConnections()
		resp, err := h.Get(s.URL() + path)
		require.NoError(t, err)
		defer resp.Body.Close()
		return resp.StatusCode
	}
	assert.Equal(t, http.StatusOK, get(identity.Operator, "reader", "/metrics"))
	assert.Equal(t, http.StatusForbidden, get(identity.Launcher, "curious", "/metrics"))
}

// TestMembersSpeakTLS: etcd's members use TLS among themselves, under the members' own identities.
func TestMembersSpeakTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	peers := freePeers(t, 3, "https")
	type started struct {
		s   *Server
		err error
	}
	results := make(chan started, len(peers))
	for i := range peers {
		o := testOptions(t)
		clustered(&o, memberName(i), peers)
		o.Identity = a.issue(identity.Control, memberName(i))
		go func() {
			s, err := Start(patient(t), o)
			results <- started{s, err}
		}()
	}
	var members []*Server
	for range peers {
		r := <-results
		require.NoError(t, r.err)
		members = append(members, r.s)
	}
	defer closeAll(t, members)
	at := leads(t, members)
	k := a.client(members[at], identity.Operator, "ops")
	_, err := k.ListJobs(context.Background(), &apiv1.ListJobsRequest{})
	assert.NoError(t, err)
}
