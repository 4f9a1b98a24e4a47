package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

// fakeNode answers the control plane as a storage node does. It holds no data.
type fakeNode struct {
	apiv1connect.UnimplementedNodeHandler
	name    string
	url     string
	handler http.Handler

	mu       sync.Mutex
	status   *apiv1.NodeStatus
	prepared map[string]int                      // by digest: how often
	sources  map[string][]*apiv1.PartitionSource // by digest: the sources of the last Prepare
	finished map[string]int
	fences   []string // fences of the calls; an entry for each change
	drains   []bool
	refuse   error              // the error that Prepare returns
	room     int                // jobs that the node has memory for; 0: no bound
	has      map[string]bool    // by digest: the jobs that it is prepared for now
	p        map[string]float64 // of drives; 1000 rows/s where none is given
	hang     chan struct{}      // Measure waits for it, if set

	measures   int            // calls of Measure
	unmeasured error          // the error that Measure returns
	spread     float64        // that measure answers
	resets     map[string]int // calls by method whose connections are still to be reset
}

func (n *fakeNode) Prepare(_ context.Context, r *apiv1.PrepareRequest) (*apiv1.PrepareResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refuse != nil {
		return nil, n.refuse
	}
	m, err := dataset.ReadManifest(r.Manifest)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if m.Rows() == 0 || r.Plan.GetBatch() == 0 || len(r.Pipeline) == 0 {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("there is nothing to prepare"))
	}
	if n.room > 0 && !n.has[string(r.Job)] && len(n.has) >= n.room {
		return nil, connect.NewError(connect.CodeResourceExhausted,
			errors.New("drive d: SLM Reserve: insufficient resources"))
	}
	n.has[string(r.Job)] = true
	n.prepared[string(r.Job)]++
	n.sources[string(r.Job)] = r.Sources
	return &apiv1.PrepareResponse{}, nil
}

func (n *fakeNode) Measure(ctx context.Context, r *apiv1.MeasureRequest) (*apiv1.MeasureResponse, error) {
	n.mu.Lock()
	n.measures++
	known, p, hang, refuse, spread := n.prepared[string(r.Job)] > 0, n.p[r.Drive], n.hang, n.unmeasured, n.spread
	n.mu.Unlock()
	if refuse != nil {
		return nil, refuse
	}
	if !known {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("no such job"))
	}
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if p == 0 {
		p = 1000
	}
	return &apiv1.MeasureResponse{RowsPerSecond: p, Rows: 1000, ElapsedSeconds: 1, SpreadShare: spread}, nil
}

func (n *fakeNode) Finish(_ context.Context, r *apiv1.FinishRequest) (*apiv1.FinishResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.finished[string(r.Job)]++
	delete(n.has, string(r.Job))
	return &apiv1.FinishResponse{}, nil
}

func (n *fakeNode) Drain(_ context.Context, r *apiv1.DrainRequest) (*apiv1.DrainResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drains = append(n.drains, r.Drain)
	n.status.Draining = r.Drain
	return &apiv1.DrainResponse{}, nil
}

// testSchema returns the schema of the fake partitions, which have an id column.
func testSchema(t testing.TB) *apiv1.Schema {
	columns, err := api.EncodeColumns([]columntypes.Column{{Name: "cat_0", Kind: 1, Bits: 32}})
	require.NoError(t, err)
	d := sha256.Sum256(columns)
	return &apiv1.Schema{Digest: d[:], Columns: columns}
}

const testPipeline = "name: test\nbatch: 10\nsparse:\n  - columns: [cat_0]\n    ops: [sigrid_hash: {salt: 0, max: " +
	"1000}]\n"

// partition describes a file that the tests do not read.
func partition(t testing.TB, name string, rows int64) *apiv1.Partition {
	footer := sha256.Sum256(fmt.Appendf(nil, "%s of %d rows", name, rows))
	return &apiv1.Partition{Name: name, Bytes: rows * 8, Rows: rows, RowGroups: []int64{rows}, ContentSha256: footer[:],
		Schema: testSchema(t).Digest}
}

// newNode serves a fake node with drives that hold the named partitions.
func newNode(t testing.TB, name string, drives map[string][]*apiv1.Partition) *fakeNode {
	t.Helper()
	n := &fakeNode{name: name, prepared: map[string]int{}, finished: map[string]int{}, p: map[string]float64{},
		has: map[string]bool{}, resets: map[string]int{}, sources: map[string][]*apiv1.PartitionSource{}}
	_, h := apiv1connect.NewNodeHandler(n)
	n.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		if f := r.Header.Get(apiv1.FenceHeader); len(n.fences) == 0 || n.fences[len(n.fences)-1] != f {
			n.fences = append(n.fences, f)
		}
		method := path.Base(r.URL.Path)
		reset := n.resets[method] > 0
		if reset {
			n.resets[method]--
		}
		n.mu.Unlock()
		if reset {
			conn, _, err := http.NewResponseController(w).Hijack()
			if assert.NoError(t, err) {
				// the peer sees a reset, as when a process on a live machine is killed
				assert.NoError(t, conn.(*net.TCPConn).SetLinger(0))
				assert.NoError(t, conn.Close())
			}
			return
		}
		h.ServeHTTP(w, r)
	})
	srv := httptest.NewServer(n.handler)
	t.Cleanup(srv.Close)
	n.url = srv.URL
	n.status = &apiv1.NodeStatus{Name: name, Incarnation: name + "-1", Urls: []string{srv.URL},
		Protocol: apiv1.Protocol, ClockSeconds: seconds(time.Now())}
	n.holds(t, drives)
	return n
}

// liveNode serves a fake node that sends heartbeats, and waits until the leader knows it.
func liveNode(t testing.TB, c *client, name string, drives map[string][]*apiv1.Partition) *fakeNode {
	t.Helper()
	n := newNode(t, name, drives)
	n.beats(t, c)
	await(t, c, name)
	return n
}

// preparedSources waits until a node is prepared for a job, and returns the sources that came with Prepare.
func (n *fakeNode) preparedSources(t testing.TB, digest []byte) []*apiv1.PartitionSource {
	t.Helper()
	require.Eventually(t, func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.prepared[string(digest)] > 0
	}, time.Minute, time.Millisecond)
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sources[string(digest)]
}

// holds changes the partitions that a node's drives hold.
func (n *fakeNode) holds(t testing.TB, drives map[string][]*apiv1.Partition) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.status.Drives, n.status.Partitions = nil, nil
	n.status.Schemas = []*apiv1.Schema{testSchema(t)}
	h := sha256.New()
	names := make([]string, 0, len(drives))
	for d := range drives {
		names = append(names, d)
	}
	slices.Sort(names)
	seen := map[string]bool{}
	for _, d := range names {
		drive := &apiv1.Drive{Name: d, Uuid: n.name + "-" + d, Streams: 2, State: "ready", Computes: true}
		for _, p := range drives[d] {
			drive.Partitions = append(drive.Partitions, p.Name)
			fmt.Fprintln(h, d, p.Name, p.ContentSha256)
			if !seen[p.Name] {
				seen[p.Name] = true
				n.status.Partitions = append(n.status.Partitions, p)
			}
		}
		n.status.Drives = append(n.status.Drives, drive)
	}
	n.status.Inventory = h.Sum(nil)
}

// set changes a node's report on itself.
func (n *fakeNode) set(change func(*apiv1.NodeStatus)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n.status)
}

// beat sends one heartbeat.
func (n *fakeNode) beat(t testing.TB, c *client) error {
	n.mu.Lock()
	st := proto.CloneOf(n.status)
	n.mu.Unlock()
	_, err := callControl(t, c, func(ctx context.Context, k apiv1connect.ControlClient) (*apiv1.HeartbeatResponse,
		error) {
		return k.Heartbeat(ctx, &apiv1.HeartbeatRequest{Status: st})
	})
	return err
}

// beats sends heartbeats until the test ends or stop is called.
func (n *fakeNode) beats(t testing.TB, c *client) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for ctx.Err() == nil {
			n.mu.Lock()
			st := proto.CloneOf(n.status)
			for digest := range n.has {
				if n.room == 0 {
					break // only nodes with little room list their jobs, of which a new leader takes back those that ended
				}
				st.Jobs = append(st.Jobs, hex.EncodeToString([]byte(digest)))
			}
			n.mu.Unlock()
			for _, k := range c.members {
				one, done := context.WithTimeout(ctx, 3*time.Second)
				_, _ = k.Heartbeat(one, &apiv1.HeartbeatRequest{Status: st}) // a member that does not lead refuses
				done()
			}
			_ = wait.Sleep(ctx, testBeat)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(stop)
	return stop
}

// testBeat is short. A node counts as dead only after hundreds of missed heartbeats, because on a loaded machine a
// heartbeat may take seconds.
const (
	testBeat = 20 * time.Millisecond
	testDead = 10 * time.Second
)

// testOptions are the options of a single member. Its term is long, since no other member can take over and a loaded
// machine must not end the term.
func testOptions(t testing.TB) Options {
	return Options{
		Data: t.TempDir(), Listen: "127.0.0.1:0", LeaderTTL: 2 * time.Minute, Tick: 20 * time.Millisecond,
		Election: 200 * time.Millisecond,
		Beat:     testBeat, DeadAfter: testDead, ScaleEvery: 20 * time.Millisecond, Logger: testLogger(t),
	}
}

// testLogger writes to the test's log when MILLRACE_LOG is set.
func testLogger(t testing.TB) *slog.Logger {
	if os.Getenv("MILLRACE_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// start starts one member that leads.
func start(t testing.TB, o Options) (*Server, *client) {
	t.Helper()
	s, err := Start(patient(t), o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	require.Eventually(t, s.Leads, time.Minute, time.Millisecond)
	return s, newClient(s)
}

func memberName(i int) string { return fmt.Sprintf("m%d", i) }

// freePeers names members at ports that were free when it looked.
func freePeers(t testing.TB, n int, scheme string) []string {
	t.Helper()
	peers := make([]string, n)
	for i := range peers {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }()
		peers[i] = fmt.Sprintf("%s=%s://%s", memberName(i), scheme, l.Addr())
	}
	return peers
}

// startCluster starts members that find each other.
func startCluster(t testing.TB, n int) ([]*Server, *client) {
	t.Helper()
	return startClusterWith(t, n, func(*Options) {})
}

// clustered sets the options of a member of a cluster. Leases and elections last as long as in production, so that no
// lease runs out on a busy machine. Other members depose a leader that refuses connections sooner.
func clustered(o *Options, name string, peers []string) {
	o.Name, o.Peers, o.LeaderTTL, o.Tick, o.Election = name, peers, 5*time.Second, 0, 0
}

// startClusterWith starts members whose options a function changes.
func startClusterWith(t testing.TB, n int, change func(*Options)) ([]*Server, *client) {
	t.Helper()
	peers := freePeers(t, n, "http")
	members := make([]*Server, n)
	var wg sync.WaitGroup
	for i := range members {
		o := testOptions(t)
		clustered(&o, memberName(i), peers)
		change(&o)
		wg.Add(1)
		go func() {
			defer wg.Done()
			s, err := Start(patient(t), o)
			if assert.NoError(t, err) {
				members[i] = s
			}
		}()
	}
	wg.Wait()
	for _, s := range members {
		require.NotNil(t, s)
	}
	return members, newClient(members...)
}

// closeAll closes members at the same time: one after the other, the last member would wait for a majority.
func closeAll(t testing.TB, members []*Server) {
	var wg sync.WaitGroup
	for _, m := range members {
		if m == nil {
			continue
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			assert.NoError(t, m.Close())
		}()
	}
	wg.Wait()
}

// client asks members in turn, as launchers do.
type client struct {
	members []apiv1connect.ControlClient
}

// launchers is the HTTP client of the tests' launchers and nodes. Like a launcher's client, and unlike the default
// client, it keeps every connection open. A rank whose launcher's connections are all closed is detached.
var launchers = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

func newClient(members ...*Server) *client {
	c := &client{}
	for _, s := range members {
		c.members = append(c.members, apiv1connect.NewControlClient(launchers, s.URL()))
	}
	return c
}

// callControl calls the leader, and waits until a member leads.
func callControl[R any](t testing.TB, c *client, fn func(context.Context, apiv1connect.ControlClient) (R, error)) (R,
	error) {
	ctx := patient(t)
	for {
		var r R
		var err error
		for _, k := range c.members {
			one, cancel := context.WithTimeout(ctx, 10*time.Second)
			r, err = fn(one, k)
			cancel()
			if err == nil {
				return r, nil
			}
			if connect.IsWireError(err) && !isNotLeader(err) && connect.CodeOf(err) != connect.CodeUnavailable {
				return r, err
			}
		}
		if wait.Sleep(ctx, 10*time.Millisecond) != nil {
			return r, err
		}
	}
}

// isNotLeader reports whether an error says that the member does not lead.
func isNotLeader(err error) bool {
	var ce *connect.Error
	if !errors.As(err, &ce) {
		return false
	}
	for _, d := range ce.Details() {
		if v, err := d.Value(); err == nil {
			if _, ok := v.(*apiv1.NotLeader); ok {
				return true
			}
		}
	}
	return false
}

// letPass advances the time of launchers and jobs to a moment that the test chooses. l.mu is held.
func letPass(l *leader, at time.Time) {
	l.mu.machine.Lives.Tick(at)
	l.settleLocked(at)
}

// attachToJob starts a fake node with one partition of 4,000 rows, submits a job over it, and attaches rank 0.
func attachToJob(t *testing.T, c *client, spec *apiv1.JobSpec) (*apiv1.JobStatus, *consumer) {
	t.Helper()
	liveNode(t, c, "a", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 4000)}})
	st := submit(t, c, spec)
	k := newConsumer(t, c, st.Id, 0)
	require.Eventually(t, func() bool { return k.attach(nil) == nil }, time.Minute, 10*time.Millisecond)
	return st, k
}
