package remote

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/remote/protocol"
)

var testSchema = &tensor.Schema{
	Label: true, Dense: []string{"int_0", "int_1"},
	Keys: []tensor.Key{{Name: "cat_0", NumEmbeddings: 1 << 30}, {Name: "list_0", List: true}}, IDs: tensor.Int64,
}

// makeBatch makes what every node makes for a name.
func makeBatch(name tensor.Name, rows int) *tensor.MiniBatch {
	mb, err := tensor.Make(testSchema, rows, 3*rows)
	if err != nil {
		panic(err)
	}
	mb.Name = name
	for r := range rows {
		id := int64(name.Epoch)<<40 | int64(name.Number)<<20 | int64(r)
		mb.Label[r] = float32(r & 1)
		mb.Dense[2*r], mb.Dense[2*r+1] = float32(r), float32(name.Number)
		mb.Values64[r] = id
		mb.Values64[rows+2*r], mb.Values64[rows+2*r+1] = id, ^id&math.MaxInt64
		mb.Lengths[r], mb.Lengths[rows+r] = 1, 2
	}
	return mb
}

// makeFragment makes what every node makes for a fragment of an epoch.
func (c *cluster) makeFragment(epoch, number uint64) (*tensor.MiniBatch, error) {
	f, err := c.plan[epoch].Fragment(number)
	if err != nil {
		return nil, err
	}
	planned, err := c.plan[epoch].MiniBatch(f.MiniBatch)
	if err != nil {
		return nil, err
	}
	whole := makeBatch(tensor.Name{Job: c.digest, Epoch: epoch, Number: f.MiniBatch}, planned.Rows)
	part := makeBatch(whole.Name, f.Rows)
	if part.Fragment.Index, part.Fragment.Of = c.plan[epoch].Place(f); part.Fragment.Of == 0 {
		return whole, nil
	}
	from, to := f.Offset, f.Offset+f.Rows
	copy(part.Label, whole.Label[from:to])
	copy(part.Dense, whole.Dense[2*from:2*to])
	copy(part.Values64, whole.Values64[from:to])
	copy(part.Values64[f.Rows:], whole.Values64[whole.Rows+2*from:whole.Rows+2*to])
	return part, nil
}

// cluster is a control plane and nodes that are as simple as they can be: one lock, one loop, no drives.
type cluster struct {
	apiv1connect.UnimplementedControlHandler
	t      testing.TB
	spec   *apiv1.JobSpec
	digest dataset.Digest
	plan   []*dataset.Plan // by epoch
	man    *dataset.Manifest
	key    []byte
	http   *httptest.Server
	before func(call string) error // may refuse a call; set before use, or under mu

	mu           sync.Mutex
	state        string // empty: running; else why it ended
	fence        uint64
	seq          uint64
	lease        uint64
	ranks        []*fakeRank
	nodes        []*fakeNode
	turn         int
	calls        map[string]int
	reasons      []string // of releases
	reports      []*apiv1.RankReport
	adopted      []*apiv1.HeldLease
	ask          bool // a new leader: it asks for the held leases
	submits      int
	submitted    *apiv1.JobSpec                  // by the first SubmitJob
	notFirst     bool                            // the first SubmitJob succeeds and its answer is lost
	acknowledged func(*apiv1.AcknowledgeRequest) // hears of every call; set before use
	lose         int                             // one of every lose Lease answers with grants is lost; 0: none
	answers      int                             // of Lease, with grants
	spoil        func(*apiv1.Grant)
	issue        int // of tickets; above 0 the tickets of held leases are sent again
	renewed      int // answers with tickets of held leases
	keys         *apiv1.ProfileKeys
}

// ticketFor is what the fake nodes take for a ticket: it names a node, the mini-batches of a lease, and an issue.
func (c *cluster) ticketFor(g *apiv1.Grant) []byte {
	return fmt.Appendf(nil, "%s %d %d %d", g.Node, g.From, g.To, c.issue)
}

// entitles reads a ticket and reports whether the node takes it.
func (n *fakeNode) entitles(r *http.Request, number uint64) (issue int, ok bool) {
	b, err := base64.StdEncoding.DecodeString(r.Header.Get(apiv1.TicketHeader))
	var node string
	var from, to uint64
	if err == nil {
		_, err = fmt.Sscanf(string(b), "%s %d %d %d", &node, &from, &to, &issue)
	}
	return issue, err == nil && node == n.name && from <= number && number < to
}

type fakeRank struct {
	session   []byte
	epoch     uint64
	owned     []dataset.Range
	delivered *dataset.Progress
	leases    map[uint64]*apiv1.Grant
	unread    []*apiv1.Grant // granted, and not named since
	said      []*apiv1.Grant // all of them
	profiling string         // the side that the launcher measures
}

type clusterOptions struct {
	rows    int64 // of each partition
	parts   int
	batch   int64
	split   int64
	epochs  uint64
	ranks   uint32
	order   string
	nodes   int
	unix    bool
	across  bool    // Mini-batches go on across partitions, each of which is one split or several.
	groups  []int64 // the rows of each partition's row groups; nil: one row group
	shuffle string  // empty: the default
}

func newCluster(t testing.TB, o clusterOptions) *cluster {
	t.Helper()
	c := &cluster{t: t, key: []byte("cluster key"), calls: map[string]int{}, fence: 1}
	c.spec = &apiv1.JobSpec{Name: "job", Pipeline: []byte("name: t"), Epochs: max(o.epochs, 1), Ranks: max(o.ranks, 1),
		Order: o.order, Plan: &apiv1.PlanOptions{Batch: o.batch, SplitBatches: o.split, Seed: 3, Shuffle: o.shuffle}}
	c.digest = sha256.Sum256([]byte("a job"))
	if o.across {
		c.spec.Plan.Boundary = dataset.BoundaryNone.String()
	}
	groups := o.groups
	if groups == nil {
		groups = []int64{o.rows}
	}
	var parts []dataset.Partition
	for i := range max(o.parts, 1) {
		parts = append(parts, dataset.Partition{Name: fmt.Sprintf("part-%d", i), Bytes: 1, Rows: o.rows,
			RowGroups: groups})
	}
	var err error
	c.man, err = dataset.NewManifest(parts)
	require.NoError(t, err)
	for e := range c.spec.Epochs {
		po, err := apiv1.ReadPlan(c.spec.Plan)
		require.NoError(t, err)
		po.Epoch = e
		p, err := dataset.NewPlan(c.man, po)
		require.NoError(t, err)
		c.plan = append(c.plan, p)
	}
	for r := range c.spec.Ranks {
		c.ranks = append(c.ranks, &fakeRank{leases: map[uint64]*apiv1.Grant{}})
		c.enter(r, 0)
	}
	path, handler := apiv1connect.NewControlHandler(c)
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	c.http = httptest.NewServer(mux)
	t.Cleanup(c.http.Close)
	for i := range max(o.nodes, 1) {
		c.nodes = append(c.nodes, newFakeNode(t, c, fmt.Sprintf("n%d", i), o.unix))
	}
	return c
}

// enter begins an epoch for a rank. c.mu is held, or no other goroutine runs yet.
func (c *cluster) enter(rank uint32, epoch uint64) {
	r, total := c.ranks[rank], c.plan[epoch].MiniBatches()
	each := total / uint64(c.spec.Ranks)
	r.epoch, r.delivered = epoch, dataset.NewProgress(c.digest, epoch, total)
	r.owned = []dataset.Range{{From: uint64(rank) * each, To: uint64(rank+1) * each}}
	clear(r.leases)
	r.unread, r.said = nil, nil
}

func (c *cluster) hook(name string) error {
	c.mu.Lock()
	c.calls[name]++
	f := c.before
	c.mu.Unlock()
	if f != nil {
		return f(name)
	}
	return nil
}

// set changes something that handlers read.
func (c *cluster) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *cluster) status() *apiv1.JobStatus {
	return &apiv1.JobStatus{Id: "j1", Spec: c.spec, Digest: c.digest[:], State: "running", Drives: 2, DrivesWanted: 2,
		Allocation: "two drives"}
}

func (c *cluster) SubmitJob(_ context.Context, req *apiv1.SubmitJobRequest) (*apiv1.SubmitJobResponse, error) {
	if err := c.hook("SubmitJob"); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.submits++; proto.Equal(c.submitted, req.Spec) {
		return &apiv1.SubmitJobResponse{Job: c.status()}, nil
	} else if c.submits > 1 {
		return nil, connect.NewError(connect.CodeAlreadyExists, errors.New("a job of this name runs"))
	}
	c.submitted = req.Spec
	c.spec.Name = req.Spec.Name
	c.spec.Pipeline = req.Spec.Pipeline
	if c.notFirst {
		return nil, connect.NewError(connect.CodeUnavailable, errors.New("the answer is lost"))
	}
	return &apiv1.SubmitJobResponse{Job: c.status()}, nil
}

func (c *cluster) GetJob(_ context.Context, req *apiv1.GetJobRequest) (*apiv1.GetJobResponse, error) {
	if err := c.hook("GetJob"); err != nil {
		return nil, err
	}
	if req.Id != "j1" && req.Id != c.spec.Name {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("no job %s", req.Id))
	}
	return &apiv1.GetJobResponse{Job: c.status()}, nil
}

func (c *cluster) DrainNode(context.Context, *apiv1.DrainNodeRequest) (*apiv1.DrainNodeResponse, error) {
	return &apiv1.DrainNodeResponse{}, c.hook("DrainNode")
}

func (c *cluster) ListJobs(context.Context, *apiv1.ListJobsRequest) (*apiv1.ListJobsResponse, error) {
	if err := c.hook("ListJobs"); err != nil {
		return nil, err
	}
	return &apiv1.ListJobsResponse{Jobs: []*apiv1.JobStatus{c.status()}}, nil
}

func (c *cluster) CancelJob(context.Context, *apiv1.CancelJobRequest) (*apiv1.CancelJobResponse, error) {
	c.set(func() { c.state = "cancelled" })
	return &apiv1.CancelJobResponse{}, nil
}

func (c *cluster) WatchJob(_ context.Context, _ *apiv1.WatchJobRequest,
	s *connect.ServerStream[apiv1.GetJobResponse]) error {
	for i := range 3 {
		if err := c.hook("WatchJob"); err != nil {
			return err
		}
		st := c.status()
		st.Delivered = uint64(i)
		if err := s.Send(&apiv1.GetJobResponse{Job: st}); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) seal(t dataset.Token) []byte {
	b, err := t.MarshalBinary()
	if err != nil {
		panic(err)
	}
	m := hmac.New(sha256.New, c.key)
	m.Write(b)
	return m.Sum(append([]byte(tokenMagic), b...))
}

func (c *cluster) open(b []byte) (t dataset.Token, err error) {
	if len(b) > 4+32 && string(b[:4]) == tokenMagic {
		m := hmac.New(sha256.New, c.key)
		m.Write(b[4 : len(b)-32])
		if !hmac.Equal(m.Sum(nil), b[len(b)-32:]) {
			return t, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%w: its seal is not this cluster's",
				dataset.ErrToken))
		}
		b = b[4 : len(b)-32]
	} else {
		return t, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%w: it is not sealed", dataset.ErrToken))
	}
	if err := t.UnmarshalBinary(b); err != nil {
		return t, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if t.Job != c.digest {
		return t, connect.NewError(connect.CodeInvalidArgument, dataset.ErrOtherJob)
	}
	return t, nil
}

func (c *cluster) Attach(_ context.Context, req *apiv1.AttachRequest) (*apiv1.AttachResponse, error) {
	if err := c.hook("Attach"); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if req.Id != "j1" && req.Id != c.spec.Name {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("no job %s", req.Id))
	}
	if int(req.Rank) >= len(c.ranks) {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("rank %d of %d", req.Rank, len(c.ranks)))
	}
	r := c.ranks[req.Rank]
	if req.Token != nil {
		t, err := c.open(req.Token)
		if err != nil {
			return nil, err
		}
		c.enter(req.Rank, t.Epoch)
		if r.delivered, err = dataset.Resume(t, c.digest, c.plan[t.Epoch].MiniBatches()); err != nil {
			return nil, err
		}
	}
	c.seq++
	r.session = []byte(fmt.Sprintf("session %d", c.seq))
	clear(r.leases)
	r.unread, r.said = nil, nil
	schema, _ := json.Marshal(testSchema)
	man, _ := c.man.MarshalJSON()
	token, _ := r.delivered.Token().MarshalBinary()
	return &apiv1.AttachResponse{Job: c.status(), Session: r.session, TensorSchema: schema, Manifest: man,
		Epoch: r.epoch, Token: token, ProfileKeys: c.keys,
		Owned: wireRanges(r.owned), MeanLength: map[string]float64{"list_0": 2}}, nil
}

// session finds the rank of a session. c.mu is held.
func (c *cluster) session(s []byte) (*fakeRank, uint32, error) {
	for i, r := range c.ranks {
		if string(r.session) == string(s) {
			if c.state != "" {
				return nil, 0, connect.NewError(connect.CodeAborted, errors.New(c.state))
			}
			return r, uint32(i), nil
		}
	}
	return nil, 0, connect.NewError(connect.CodeAborted, errors.New("the session was fenced off"))
}

func (c *cluster) Lease(ctx context.Context, req *apiv1.LeaseRequest) (*apiv1.LeaseResponse, error) {
	if err := c.hook("Lease"); err != nil {
		return nil, err
	}
	for end := time.Now().Add(time.Duration(req.WaitSeconds * float64(time.Second))); ; {
		c.mu.Lock()
		resp, err := c.grant(req)
		over := time.Now().After(end)
		if over && err == nil && len(resp.Tickets) > 0 {
			c.renewed++
		}
		c.mu.Unlock()
		if err != nil || len(resp.Grants) > 0 || resp.JobDone || resp.UnknownSession || resp.Adopt ||
			len(resp.Revoked) > 0 || over {
			return resp, err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return resp, nil
		}
	}
}

func (c *cluster) grant(req *apiv1.LeaseRequest) (*apiv1.LeaseResponse, error) {
	r, rank, err := c.session(req.Session)
	if err != nil {
		if c.state != "" {
			return nil, err
		}
		return &apiv1.LeaseResponse{UnknownSession: true}, nil
	}
	resp := &apiv1.LeaseResponse{Fence: c.fence}
	if req.Report != nil {
		c.reports = append(c.reports, req.Report)
		r.profiling = req.Report.Profiling
		req.Report = nil // a call that waits reports once
	}
	if req.Epoch > r.epoch {
		if !c.finished(r) {
			return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("the epoch before is not delivered"))
		}
		if req.Epoch >= c.spec.Epochs {
			resp.JobDone = true
			return resp, nil
		}
		c.enter(rank, req.Epoch)
	}
	if c.ask && len(req.Adopt) == 0 && len(req.Held) > 0 {
		resp.Adopt = true
		return resp, nil
	}
	for _, h := range req.Adopt {
		if !c.ask {
			break // it was done by another call
		}
		c.adopted = append(c.adopted, h)
		r.leases[h.Lease] = &apiv1.Grant{Lease: h.Lease, Epoch: h.Epoch, Split: h.Split, From: h.From, To: h.To,
			Node: h.Node}
	}
	c.ask = false
	for _, id := range req.Held {
		if g, ok := r.leases[id]; !ok || c.node(g.Node).isGone() {
			delete(r.leases, id)
			resp.Revoked = append(resp.Revoked, id)
		}
	}
	for _, id := range req.Held {
		if g := r.leases[id]; g != nil && c.issue > 0 {
			resp.Tickets = append(resp.Tickets, &apiv1.LeaseTicket{Lease: id, Ticket: c.ticketFor(g)})
		}
	}
	r.unread = slices.DeleteFunc(r.unread, func(g *apiv1.Grant) bool {
		return r.leases[g.Lease] == nil || slices.Contains(req.Held, g.Lease)
	})
	resp.Grants = slices.Clone(r.unread)
	for range min(int(req.Want)-len(r.unread), 4) {
		g := c.next(r)
		if g == nil {
			break
		}
		if c.spoil != nil {
			c.spoil(g)
		}
		g.Ticket = c.ticketFor(g)
		r.leases[g.Lease] = g
		r.unread, r.said = append(r.unread, g), append(r.said, g)
		resp.Grants = append(resp.Grants, g)
	}
	if len(resp.Grants) > 0 {
		if c.answers++; c.lose > 0 && c.answers%c.lose == 0 {
			return nil, connect.NewError(connect.CodeUnavailable, errors.New("the answer is lost"))
		}
	}
	return resp, nil
}

func (c *cluster) finished(r *fakeRank) bool {
	for _, o := range r.owned {
		if n, ok := r.delivered.Pending(o.From); ok && n < o.To {
			return false
		}
	}
	return true
}

// next makes a grant of the first fragments that are neither delivered nor out, on the nodes in turn.
func (c *cluster) next(r *fakeRank) *apiv1.Grant {
	plan := c.plan[r.epoch]
	out := func(n uint64) bool {
		for _, g := range r.leases {
			if g.From <= n && n < g.To {
				return true
			}
		}
		f, _ := plan.Fragment(n)
		return r.delivered.Acked(f.MiniBatch)
	}
	var node *fakeNode
	for range c.nodes {
		c.turn++
		n := c.nodes[c.turn%len(c.nodes)]
		if measured := r.profiling; measured != "" && n.serves != (measured == apiv1.SideOwn) {
			continue
		}
		if !n.isGone() {
			node = n
			break
		}
	}
	if node == nil {
		return nil
	}
	for _, owned := range r.owned {
		o := plan.FragmentsOf(owned)
		for n := o.From; n < o.To; n++ {
			if out(n) {
				continue
			}
			f, _ := plan.Fragment(n)
			s, _ := plan.Split(f.Split)
			to := n + 1
			for to < min(o.To, s.FirstFragment+uint64(s.Fragments)) && !out(to) {
				to++
			}
			c.lease++
			return &apiv1.Grant{Lease: c.lease, Epoch: r.epoch, Split: uint32(s.Position), From: n, To: to,
				Node: node.name, Urls: node.urls, Drive: "d 0", Own: node.serves}
		}
	}
	return nil
}

func (c *cluster) node(name string) *fakeNode {
	for _, n := range c.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

func (c *cluster) Acknowledge(_ context.Context, req *apiv1.AcknowledgeRequest) (*apiv1.AcknowledgeResponse, error) {
	if err := c.hook("Acknowledge"); err != nil {
		return nil, err
	}
	if c.acknowledged != nil {
		c.acknowledged(req)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r, _, err := c.session(req.Session)
	if err != nil {
		return nil, err
	}
	if req.Epoch < r.epoch { // delivered and forgotten: a call that was on its way while the rank entered the next one
		return &apiv1.AcknowledgeResponse{}, nil
	}
	if req.Epoch > r.epoch {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("epoch %d, the rank is in %d", req.Epoch,
			r.epoch))
	}
	for _, run := range req.Numbers {
		for n := run.From; n < run.To; n++ {
			if err := r.delivered.Ack(n); err != nil {
				return nil, connect.NewError(connect.CodeInvalidArgument, err)
			}
		}
	}
	return &apiv1.AcknowledgeResponse{Fence: c.fence}, nil
}

func (c *cluster) Release(_ context.Context, req *apiv1.ReleaseRequest) (*apiv1.ReleaseResponse, error) {
	if err := c.hook("Release"); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r, _, err := c.session(req.Session)
	if err != nil {
		return nil, err
	}
	for _, id := range req.Leases {
		c.reasons = append(c.reasons, req.Reason)
		delete(r.leases, id)
	}
	if req.Reason == protocol.ReasonDetach || req.Reason == protocol.ReasonDone {
		c.reasons = append(c.reasons, req.Reason)
		clear(r.leases)
	}
	return &apiv1.ReleaseResponse{}, nil
}

func (c *cluster) Checkpoint(_ context.Context, req *apiv1.CheckpointRequest) (*apiv1.CheckpointResponse, error) {
	if err := c.hook("Checkpoint"); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r, _, err := c.session(req.Session)
	if req.Session == nil {
		r, err = c.ranks[0], nil
	}
	if err != nil {
		return nil, err
	}
	return &apiv1.CheckpointResponse{Token: c.seal(r.delivered.Token())}, nil
}

// delivered lists the numbers of a rank that the ledger knows as delivered.
func (c *cluster) delivered(rank int) dataset.Token {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ranks[rank].delivered.Token()
}

// fakeNode makes mini-batches from their names.
type fakeNode struct {
	apiv1connect.UnimplementedNodeHandler
	c      *cluster
	serves bool // the worker of the rank's own CPUs; set before use
	// the node has counted few rows since it was started; set before use
	restarted bool
	name      string
	addr      string
	urls      []string
	http      []*http.Server

	mu sync.Mutex
	// the control plane takes it for dead
	gone   bool
	serve  func(n uint64, w http.ResponseWriter, r *http.Request, frame []byte) bool // true: it answered
	served map[uint64]int
	issues map[int]int // of tickets that were shown, and how often
	unix   int         // requests over the socket
}

func newFakeNode(t testing.TB, c *cluster, name string, unix bool) *fakeNode {
	t.Helper()
	n := &fakeNode{c: c, name: name, served: map[uint64]int{}, issues: map[int]int{}}
	mux := http.NewServeMux()
	path, handler := apiv1connect.NewNodeHandler(n)
	mux.Handle(path, handler)
	mux.HandleFunc("GET "+apiv1.MiniBatchPath, n.miniBatch)
	listen := func(network, addr string) net.Listener {
		l, err := net.Listen(network, addr)
		require.NoError(t, err)
		s := &http.Server{Handler: mux, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
		n.http = append(n.http, s)
		go func() { _ = s.Serve(l) }()
		return l
	}
	n.addr = listen("tcp", "127.0.0.1:0").Addr().String()
	n.urls = append(n.urls, "http://"+n.addr)
	if unix {
		dir, err := os.MkdirTemp("", "mr") // a socket's path is short
		require.NoError(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		sock := filepath.Join(dir, "s")
		listen("unix", sock)
		n.urls = append(n.urls, "unix:"+sock)
	}
	t.Cleanup(n.close)
	return n
}

func (n *fakeNode) close() {
	for _, s := range n.http {
		_ = s.Close()
	}
}

func (n *fakeNode) isGone() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.gone
}

// kill ends the node; the control plane notices.
func (n *fakeNode) kill() {
	n.close()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gone = true
}

// do sets the node's action in place of an answer.
func (n *fakeNode) do(f func(number uint64, w http.ResponseWriter, r *http.Request, frame []byte) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.serve = f
}

func (n *fakeNode) Describe(context.Context, *apiv1.DescribeRequest) (*apiv1.DescribeResponse, error) {
	return &apiv1.DescribeResponse{Status: &apiv1.NodeStatus{Name: n.name, Protocol: apiv1.Protocol}}, nil
}

func (n *fakeNode) Report(context.Context, *apiv1.ReportRequest) (*apiv1.ReportResponse, error) {
	counted := 1 << 20 // for all ranks
	if n.restarted {
		counted = 7
	}
	return &apiv1.ReportResponse{Drives: [][]byte{
		fmt.Appendf(nil, `{"name":"d 0","engine":"drive (vendor)","rows":%d}`, counted),
	}}, nil
}

func (n *fakeNode) miniBatch(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	job, _ := hex.DecodeString(q.Get("job"))
	epoch, _ := strconv.ParseUint(q.Get("epoch"), 10, 64)
	number, _ := strconv.ParseUint(q.Get("number"), 10, 64)
	until, _ := strconv.ParseUint(q.Get("until"), 10, 64)
	if string(job) != string(n.c.digest[:]) || q.Get("drive") != "d 0" || until <= number {
		refuse(w, http.StatusNotFound, "not_found", "no such job or drive: "+r.URL.String())
		return
	}
	mb, err := n.c.makeFragment(epoch, number)
	if err != nil {
		refuse(w, http.StatusNotFound, "not_found", err.Error())
		return
	}
	issue, ok := n.entitles(r, number)
	if !ok {
		refuse(w, http.StatusUnauthorized, "unauthenticated", fmt.Sprintf("no ticket for %d: %q", number,
			r.Header.Get(apiv1.TicketHeader)))
		return
	}
	frame, err := tensor.AppendFrame(nil, mb)
	if err != nil {
		panic(err)
	}
	n.mu.Lock()
	n.served[number]++
	n.issues[issue]++
	if l := r.Context().Value(http.LocalAddrContextKey).(net.Addr); l.Network() == "unix" {
		n.unix++
	}
	f := n.serve
	n.mu.Unlock()
	if f != nil && f(number, w, r, frame) {
		return
	}
	send(w, frame)
}

func send(w http.ResponseWriter, frame []byte) {
	w.Header().Set("Content-Type", apiv1.FrameType)
	w.Header().Set("Content-Length", strconv.Itoa(len(frame)))
	_, _ = w.Write(frame)
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"code": code, "message": message})
}

// dial makes a client of the cluster that does not wait for long.
func (c *cluster) dial(t testing.TB, urls ...string) *Client {
	t.Helper()
	if urls == nil {
		urls = []string{c.http.URL}
	}
	o := Options{Control: urls, Patience: 20 * time.Second}
	if os.Getenv("MILLRACE_LOG") != "" {
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	client, err := Dial(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// attach attaches, with less patience and smaller groups than the defaults.
func (c *cluster) attach(t testing.TB, client *Client, o AttachOptions) *Job {
	t.Helper()
	if o.AckDelay == 0 {
		o.AckDelay = time.Millisecond
	}
	j, err := client.Attach(t.Context(), "job", o)
	require.NoError(t, err)
	return j
}

// taken is what an iteration brought.
type taken struct {
	numbers []uint64
	err     error
}

// take takes at most n mini-batches (all if n < 0), and checks each; then is called after each, if not nil.
func take(t testing.TB, c *cluster, j *Job, n int, then func(mb *tensor.MiniBatch)) taken {
	t.Helper()
	var got taken
	seen := map[tensor.Name]bool{}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if n == 0 {
		return got
	}
	for mb, err := range j.MiniBatches(ctx) {
		if err != nil {
			got.err = err
			break
		}
		require.False(t, seen[mb.Name], "%v came twice", mb.Name)
		seen[mb.Name] = true
		want := makeBatch(mb.Name, mb.Rows)
		require.Empty(t, tensor.Diff(want, mb))
		got.numbers = append(got.numbers, mb.Name.Number)
		if then != nil {
			then(mb)
		}
		if len(got.numbers) == n {
			require.NoError(t, j.Acknowledge(mb.Name))
			break
		}
	}
	return got
}

// all lists the numbers from..to.
func all(from, to uint64) []uint64 {
	var out []uint64
	for n := from; n < to; n++ {
		out = append(out, n)
	}
	return out
}

func sorted(n []uint64) []uint64 {
	out := slices.Clone(n)
	slices.Sort(out)
	return out
}
