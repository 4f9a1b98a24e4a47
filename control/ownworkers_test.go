package control

import (
	"crypto/tls"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/sdk/dataset"
)

// securePlane is a member that checks identities, a node that holds a partition, and a running job of the owner ads.
type securePlane struct {
	authority
	server *Server
	ads    apiv1connect.ControlClient
	job    *apiv1.JobStatus
}

func startSecurePlane(t *testing.T) *securePlane {
	t.Helper()
	p := &securePlane{authority: newAuthority(t)}
	o := testOptions(t)
	o.Identity = p.issue(identity.Control, "m0")
	var err error
	p.server, err = Start(patient(t), o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.server.Close()) })
	require.Eventually(t, p.server.Leads, time.Minute, time.Millisecond)
	p.ads = p.client(p.server, identity.Launcher, "ads.host-0")
	n := newNode(t, "n0", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 400)}})
	id := p.issue(identity.Node, "n0")
	n.serveSecurely(t, id)
	p.beats(n, id)
	p.job = p.submit(p.ads, "job", "")
	return p
}

// submit submits a job and waits until it runs.
func (p *securePlane) submit(by apiv1connect.ControlClient, name, owner string) *apiv1.JobStatus {
	p.t.Helper()
	spec := &apiv1.JobSpec{Name: name, Pipeline: []byte(testPipeline), Ranks: 2, Offload: "0.5",
		Plan: &apiv1.PlanOptions{SplitBatches: 1}}
	r, err := by.SubmitJob(patient(p.t), &apiv1.SubmitJobRequest{Spec: spec, Owner: owner})
	require.NoError(p.t, err)
	require.Eventually(p.t, func() bool {
		g, err := by.GetJob(patient(p.t), &apiv1.GetJobRequest{Id: r.Job.Id})
		return err == nil && g.Job.State == "running"
	}, time.Minute, 10*time.Millisecond)
	return r.Job
}

// beats sends a node's heartbeats under an identity until the test ends.
func (p *securePlane) beats(n *fakeNode, id identity.Options) {
	p.t.Helper()
	h, err := identity.HTTPClient(id)
	require.NoError(p.t, err)
	n.beats(p.t, &client{members: []apiv1connect.ControlClient{apiv1connect.NewControlClient(h, p.server.URL())}})
	p.t.Cleanup(h.CloseIdleConnections)
}

// serveSecurely serves a node under an identity, at the address that its status then names. It returns the number of
// connections that were opened.
func (n *fakeNode) serveSecurely(t *testing.T, id identity.Options) *atomic.Int64 {
	t.Helper()
	conf, err := id.Server()
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	opened := new(atomic.Int64)
	srv := &http.Server{Handler: n.handler, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				opened.Add(1)
			}
		}}
	var running sync.WaitGroup
	running.Go(func() { _ = srv.Serve(tls.NewListener(l, conf)) })
	t.Cleanup(func() { assert.NoError(t, srv.Close()); running.Wait() })
	n.set(func(s *apiv1.NodeStatus) { s.Urls = []string{"https://" + l.Addr().String()} })
	return opened
}

// ownStatus is the status of a worker of rank 0 of a job, as a launcher registers it.
func ownStatus(job string) *apiv1.NodeStatus {
	return &apiv1.NodeStatus{
		Name: "own-0-badcafe", Incarnation: "1", Urls: []string{"https://127.0.0.1:1"}, Protocol: apiv1.Protocol,
		Inventory: []byte("none"), Drives: []*apiv1.Drive{{Name: "cpu", State: "ready", Streams: 2, Reach: apiv1.ReachAny,
			ComputesOn: "cpu", Serves: &apiv1.RankName{Job: job}}},
	}
}

// TestWhatALauncherMayRegister checks every rule of a worker that registers with a launcher's certificate, from both
// sides: each change of a status that is taken is refused with permission_denied and an error that says what to do.
// Every change is made to a worker that is registered already, too, because each heartbeat counts.
func TestWhatALauncherMayRegister(t *testing.T) {
	t.Parallel()
	p := startSecurePlane(t)
	ctx := patient(t)
	operator := p.client(p.server, identity.Operator, "ops")
	news := p.client(p.server, identity.Launcher, "news")
	sibling := p.client(p.server, identity.Launcher, "ads.host-1")
	node := p.client(p.server, identity.Node, "own-node")
	open := p.submit(operator, "open", "")
	given := p.submit(operator, "given", "ads")
	theirs := p.submit(news, "theirs", "")
	beat := func(by apiv1connect.ControlClient, s *apiv1.NodeStatus) error {
		_, err := by.Heartbeat(ctx, &apiv1.HeartbeatRequest{Status: s})
		return err
	}
	for name, c := range map[string]struct {
		change func(s *apiv1.NodeStatus)
		want   string // empty: the worker is registered
	}{
		"as it is":                  {func(*apiv1.NodeStatus) {}, ""},
		"before its drive is open":  {func(s *apiv1.NodeStatus) { s.Drives[0].State = "opening" }, ""},
		"the last rank":             {func(s *apiv1.NodeStatus) { s.Drives[0].Serves.Rank = 1 }, ""},
		"a rank too many":           {func(s *apiv1.NodeStatus) { s.Drives[0].Serves.Rank = 2 }, "has 2 ranks"},
		"an operator's, for ads":    {func(s *apiv1.NodeStatus) { s.Drives[0].Serves.Job = given.Id }, ""},
		"a job without an owner":    {func(s *apiv1.NodeStatus) { s.Drives[0].Serves.Job = open.Id }, "--owner ads"},
		"another owner's job":       {func(s *apiv1.NodeStatus) { s.Drives[0].Serves.Job = theirs.Id }, "ads has no job"},
		"no job":                    {func(s *apiv1.NodeStatus) { s.Drives[0].Serves.Job = "no-such" }, "ads has no job"},
		"a job by its name":         {func(s *apiv1.NodeStatus) { s.Drives[0].Serves.Job = "job" }, "take the id"},
		"every rank":                {func(s *apiv1.NodeStatus) { s.Drives[0].Serves = nil }, "--serves JOB/RANK"},
		"a drive that holds":        {func(s *apiv1.NodeStatus) { s.Drives[0].Reach = "" }, "--serves JOB/RANK"},
		"a drive with partitions":   {func(s *apiv1.NodeStatus) { s.Drives[0].Partitions = []string{"p0"} }, "--serves"},
		"no drive":                  {func(s *apiv1.NodeStatus) { s.Drives = nil }, "no drive"},
		"an empty drive":            {func(s *apiv1.NodeStatus) { s.Drives = append(s.Drives, &apiv1.Drive{}) }, "--serves"},
		"a name without the prefix": {func(s *apiv1.NodeStatus) { s.Name = "n0" }, "called own-"},
		"a name that is none":       {func(s *apiv1.NodeStatus) { s.Name = "own-\x1b[2J" }, "called own-"},
		"the longest name":          {func(s *apiv1.NodeStatus) { s.Name = "own-" + strings.Repeat("x", 59) }, ""},
		"too long a name":           {func(s *apiv1.NodeStatus) { s.Name = "own-" + strings.Repeat("x", 60) }, "1 to 63"},
		"two drives": {func(s *apiv1.NodeStatus) {
			s.Drives = append(s.Drives, proto.CloneOf(s.Drives[0]))
			s.Drives[1].Name = "card"
		}, ""},
		"a second drive for another's job": {func(s *apiv1.NodeStatus) {
			s.Drives = append(s.Drives, proto.CloneOf(s.Drives[0]))
			s.Drives[1].Name, s.Drives[1].Serves.Job = "card", theirs.Id
		}, "ads has no job"},
		"a partition": {func(s *apiv1.NodeStatus) {
			s.Partitions = []*apiv1.Partition{partition(t, "p0", 400)}
		}, "announces partitions"},
		"a source": {func(s *apiv1.NodeStatus) {
			s.Sources = []*apiv1.PartitionSource{{Partition: "p0", Url: "https://evil.example.net/p0"}}
		}, "announces partitions"},
		"a schema": {func(s *apiv1.NodeStatus) { s.Schemas = []*apiv1.Schema{testSchema(t)} }, "announces partitions"},
		"a unix socket": {func(s *apiv1.NodeStatus) {
			s.Urls = append(s.Urls, "unix:/run/millrace/node.sock")
		}, "https: URLs only"},
		"in clear": {func(s *apiv1.NodeStatus) { s.Urls = []string{"http://127.0.0.1:1"} }, "https: URLs only"},
		"a large status": {func(s *apiv1.NodeStatus) {
			s.Jobs = []string{strings.Repeat("0", maxOwnStatus-proto.Size(s)-10)}
		}, ""},
		"too large a status": {func(s *apiv1.NodeStatus) {
			s.Jobs = []string{strings.Repeat("0", maxOwnStatus)}
		}, "at most 32768"},
		"an owner that it names itself": {func(s *apiv1.NodeStatus) {
			s.Owner, s.Drives[0].Serves.Job = "news", theirs.Id
		}, "ads has no job"},
	} {
		for _, registered := range []bool{false, true} {
			s := ownStatus(p.job.Id)
			if registered {
				require.NoError(t, beat(p.ads, proto.CloneOf(s)), "%s: before", name)
			}
			c.change(s)
			err := beat(p.ads, s)
			if c.want == "" {
				assert.NoError(t, err, "%s", name)
				continue
			}
			assert.Equal(t, connect.CodePermissionDenied, connect.CodeOf(err), "%s: %v", name, err)
			assert.ErrorContains(t, err, "own worker refused: launcher/ads.host-0 registers", name)
			assert.ErrorContains(t, err, c.want, name)
		}
	}

	assert.NoError(t, beat(sibling, ownStatus(p.job.Id)), "another host of the same owner")
	assert.Equal(t, connect.CodePermissionDenied, connect.CodeOf(beat(news, ownStatus(p.job.Id))), "somebody else's job")
	err := beat(news, ownStatus(theirs.Id))
	assert.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err), "somebody else's name, for its own job: %v", err)
	assert.ErrorContains(t, err, "another owner")
	assert.Equal(t, connect.CodePermissionDenied, connect.CodeOf(beat(operator, ownStatus(open.Id))))
	s := ownStatus(open.Id)
	s.Name = "own-node"
	assert.NoError(t, beat(node, s), "a node's certificate is enough for every job, as before")

	r, err := p.ads.ListNodes(ctx, &apiv1.ListNodesRequest{})
	require.NoError(t, err)
	owners := map[string]string{}
	for _, n := range r.Nodes {
		owners[n.Status.Name] = n.Status.Owner
	}
	assert.Equal(t, map[string]string{"n0": "", "own-0-badcafe": "ads", "own-" + strings.Repeat("x", 59): "ads",
		"own-node": ""}, owners, "what was refused is not known")
}

// TestALauncherLocatesItsOwnPartitions checks that Locate returns the places of partitions of the jobs of the
// launcher's owner, and of no other job, even if the two jobs differ in nothing but the owner.
func TestALauncherLocatesItsOwnPartitions(t *testing.T) {
	t.Parallel()
	p := startSecurePlane(t)
	ctx := patient(t)
	job, err := p.ads.GetJob(ctx, &apiv1.GetJobRequest{Id: p.job.Id})
	require.NoError(t, err)
	ask := &apiv1.LocateRequest{Job: job.Job.Digest, Partitions: []string{"p0"}}
	r, err := p.ads.Locate(ctx, ask)
	require.NoError(t, err)
	require.Len(t, r.Sources, 1)
	assert.Equal(t, "n0", r.Sources[0].Copies[0].Node)
	news := p.client(p.server, identity.Launcher, "news")
	_, err = news.Locate(ctx, ask)
	assert.Equal(t, connect.CodeNotFound, connect.CodeOf(err), "%v", err)
	theirs := p.submit(news, "theirs", "")
	same, err := news.GetJob(ctx, &apiv1.GetJobRequest{Id: theirs.Id})
	require.NoError(t, err)
	require.Equal(t, job.Job.Digest, same.Job.Digest)
	_, err = news.Locate(ctx, ask)
	assert.NoError(t, err)
	operator := p.client(p.server, identity.Operator, "ops")
	open, err := operator.SubmitJob(ctx, &apiv1.SubmitJobRequest{Spec: &apiv1.JobSpec{Name: "open",
		Pipeline: []byte(strings.Replace(testPipeline, "max: 1000", "max: 2000", 1))}})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		g, err := operator.GetJob(ctx, &apiv1.GetJobRequest{Id: open.Job.Id})
		open = &apiv1.SubmitJobResponse{Job: g.GetJob()}
		return err == nil && len(g.Job.Digest) == len(dataset.Digest{})
	}, time.Minute, 10*time.Millisecond)
	ask.Job = open.Job.Digest
	_, err = p.ads.Locate(ctx, ask)
	assert.Equal(t, connect.CodeNotFound, connect.CodeOf(err), "a job without an owner: %v", err)
}

// TestTheLeaderCallsOnlyTheOwnersServer checks that the leader prepares a launcher's worker that shows a certificate of
// the owner, and calls no other server that a launcher's heartbeat names: another owner's worker, a node, a member.
func TestTheLeaderCallsOnlyTheOwnersServer(t *testing.T) {
	t.Parallel()
	p := startSecurePlane(t)
	register := func(name string, at *fakeNode) {
		at.set(func(s *apiv1.NodeStatus) {
			urls := s.Urls
			proto.Reset(s)
			proto.Merge(s, ownStatus(p.job.Id))
			s.Name, s.Urls = name, urls
		})
	}
	hire := func(role identity.Role, name string) (*fakeNode, *atomic.Int64) {
		n := newNode(t, name, nil)
		opened := n.serveSecurely(t, p.issue(role, name))
		register("own-"+name, n)
		p.beats(n, p.issue(identity.Launcher, "ads.registers-"+name))
		return n, opened
	}
	strangers := map[*fakeNode]*atomic.Int64{}
	for name, role := range map[string]identity.Role{"news": identity.Launcher, "ads-2": identity.Launcher,
		"n1": identity.Node, "m1": identity.Control} {
		n, opened := hire(role, name)
		strangers[n] = opened
	}
	own, _ := hire(identity.Launcher, "ads.gpu-0")
	own.preparedSources(t, p.digest())
	require.Eventually(t, func() bool {
		g, err := p.ads.GetJob(patient(t), &apiv1.GetJobRequest{Id: p.job.Id})
		return err == nil && len(g.Job.Ranks) == 2 && g.Job.Ranks[0].OwnWorkers == 1
	}, time.Minute, 10*time.Millisecond)
	for n, opened := range strangers {
		require.Eventually(t, func() bool { return opened.Load() > 0 }, time.Minute, 10*time.Millisecond,
			"the leader connects to %s, and again every two seconds", n.name)
		n.mu.Lock()
		assert.Empty(t, n.fences, n.name)
		n.mu.Unlock()
	}
}

// digest returns the digest of the plane's job.
func (p *securePlane) digest() []byte {
	g, err := p.ads.GetJob(patient(p.t), &apiv1.GetJobRequest{Id: p.job.Id})
	require.NoError(p.t, err)
	return g.Job.Digest
}

// TestAWorkerThatLiesAboutItsSpeed checks that a P that is not a number of rows a second is an error of the call.
func TestAWorkerThatLiesAboutItsSpeed(t *testing.T) {
	n := newNode(t, "w", nil)
	calls := nodeCalls{http: launchers, reach: func(string) reached { return reached{urls: []string{n.url}} }}
	digest := dataset.Digest{1}
	n.prepared[string(digest[:])] = 1
	for p, taken := range map[float64]bool{1: true, 1e11: true, 1e12: false, math.Inf(1): false, -1: false,
		math.Inf(-1): false, math.NaN(): false} {
		n.mu.Lock()
		n.p["d"] = p
		n.mu.Unlock()
		measured, err := calls.measure(patient(t), "w", "d", digest, nil, 0)
		if taken {
			require.NoError(t, err)
			assert.Equal(t, measuredP{rows: p}, measured)
			continue
		}
		assert.ErrorContains(t, err, "rows/s", "%v", p)
		assert.Zero(t, measured)
	}
	for spread, taken := range map[float64]bool{0: true, .05: true, 1: true, 1.1: false, -.1: false, math.NaN(): false,
		math.Inf(1): false} {
		n.mu.Lock()
		n.p["d"], n.spread = 1000, spread
		n.mu.Unlock()
		measured, err := calls.measure(patient(t), "w", "d", digest, nil, 0)
		if taken {
			require.NoError(t, err)
			assert.Equal(t, measuredP{rows: 1000, spread: spread}, measured)
			continue
		}
		assert.ErrorContains(t, err, "are known to a share of", "%v", spread)
		assert.Zero(t, measured)
	}
}
