package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/internal/leaks"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
)

// content is a data set of three partitions.
func content(t testing.TB) map[string][]byte {
	return map[string][]byte{"a.parquet": nodetest.Partition(t, 1, 1030), "day 1/b.parquet": nodetest.Partition(t, 2, 400),
		"c.parquet": nodetest.Partition(t, 3, 75)}
}

// logger returns a logger that writes to standard error if MILLRACE_LOG is set, and discards everything otherwise.
func logger() *slog.Logger {
	if os.Getenv("MILLRACE_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

var drives int // makes mem: drives' names unique

// startHolder starts a storage node with one drive, d0, that holds files. The drive is returned, so that it can be
// written to.
func startHolder(t testing.TB, name string, files map[string][]byte) (*node.Agent, *sdk.Device) {
	t.Helper()
	drives++
	uri := fmt.Sprintf("mem:worker-%d-%d", os.Getpid(), drives)
	dev, err := sdk.Create(t.Context(), uri+"?size=8MiB&slm=32MiB", sdk.DeviceOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	vol, err := volume.Open(t.Context(), dev)
	require.NoError(t, err)
	for name, b := range files {
		require.NoError(t, vol.Put(t.Context(), name, int64(len(b)), bytes.NewReader(b)))
	}
	c := node.DefaultConfig()
	c.Name, c.Listen, c.Measure = name, []string{"127.0.0.1:0"}, node.Duration(time.Millisecond)
	c.Drives = []node.DriveConfig{{Name: "d0", URI: uri}}
	a, err := node.Start(t.Context(), c, node.Options{Logger: logger(), Probe: 20 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, a.Close()) })
	await(t, "the holder's drive", func() bool {
		resp, err := http.Get(a.URLs()[0] + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return a, dev
}

// await waits until a condition holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		require.True(t, time.Now().Before(end), "%s: never", what)
	}
}

// leader is a control plane whose answers a test sets.
type leader struct {
	apiv1connect.UnimplementedControlHandler

	mu      sync.Mutex
	status  *apiv1.NodeStatus // the last heartbeat's
	beats   int
	sources map[string]*apiv1.PartitionSource
	located int
}

func (l *leader) Heartbeat(_ context.Context, r *apiv1.HeartbeatRequest) (*apiv1.HeartbeatResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status = r.Status
	l.beats++
	return &apiv1.HeartbeatResponse{Protocol: apiv1.Protocol, Leader: "m0", Fence: 1, IntervalSeconds: 0.02}, nil
}

func (l *leader) Locate(_ context.Context, r *apiv1.LocateRequest) (*apiv1.LocateResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.located++
	answer := &apiv1.LocateResponse{}
	for _, name := range r.Partitions {
		s := l.sources[name]
		if s == nil {
			s = &apiv1.PartitionSource{Partition: name}
		}
		answer.Sources = append(answer.Sources, s)
	}
	return answer, nil
}

// place sets where a partition lies from now on.
func (l *leader) place(s *apiv1.PartitionSource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sources[s.Partition] = s
}

// fixture is a worker under test.
type fixture struct {
	*node.Agent
	t      testing.TB
	leader *leader
	client *http.Client
	base   string
	drive  string // the name of the worker's drive
	node   apiv1connect.NodeClient
}

// startWorker starts a worker under a control plane of its own.
func startWorker(t testing.TB, change func(*Config)) *fixture {
	t.Helper()
	return startWorkerOf(t, nil, change)
}

// startWorkerOf starts a worker with stores of its own.
func startWorkerOf(t testing.TB, stores *source.Stores, change func(*Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, leader: &leader{sources: map[string]*apiv1.PartitionSource{}}}
	_, handler := apiv1connect.NewControlHandler(f.leader)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c := DefaultConfig()
	c.Name, c.Listen, c.Control = "w0", []string{"127.0.0.1:0"}, []string{server.URL}
	c.Measure, c.Threads, c.Memory = node.Duration(time.Millisecond), 2, 256<<20
	c.ReadTries = 6
	c.Runs.BusyWait = node.Duration(time.Minute)
	if change != nil {
		change(&c)
	}
	var err error
	f.Agent, err = Start(t.Context(), c, Options{Logger: logger(), Stores: stores})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.Close()) })
	f.client, err = identity.HTTPClient(identity.Options{})
	require.NoError(t, err)
	t.Cleanup(f.client.CloseIdleConnections)
	f.base, err = identity.BaseURL(f.URLs()[0])
	require.NoError(t, err)
	f.node = apiv1connect.NewNodeClient(f.client, f.base)
	f.awaitState("ready")
	await(t, "a heartbeat behind the first answer, which has the keys of tickets", f.leader.answered)
	f.drive = f.leader.drive().Name
	return f
}

// answered reports whether the worker has had the answer of a heartbeat.
func (l *leader) answered() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.beats > 1
}

// drive returns the drive of the last heartbeat, or nil.
func (l *leader) drive() *apiv1.Drive {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.status == nil {
		return nil
	}
	return l.status.Drives[0]
}

// awaitState waits until the worker's drive is in a state that begins with a word.
func (f *fixture) awaitState(word string) {
	f.t.Helper()
	await(f.t, "a heartbeat with the drive's state "+word, func() bool {
		d := f.leader.drive()
		return d != nil && strings.HasPrefix(d.State, word)
	})
}

// describeJob makes a job of all partitions of a holder, and prepares it there.
func describeJob(t testing.TB, holder *node.Agent, o dataset.Options) *nodetest.Job {
	t.Helper()
	client := apiv1connect.NewNodeClient(http.DefaultClient, holder.URLs()[0])
	r, err := client.Describe(t.Context(), &apiv1.DescribeRequest{})
	require.NoError(t, err)
	var list []dataset.Partition
	for _, p := range r.Status.Partitions {
		list = append(list, dataset.Partition{Name: p.Name, Bytes: p.Bytes, Rows: p.Rows, RowGroups: p.RowGroups,
			Content: dataset.Digest(p.ContentSha256)})
	}
	columns, err := api.DecodeColumns(r.Status.Schemas[0].Columns)
	require.NoError(t, err)
	j := nodetest.NewJob(t, nodetest.Document, o, list, columns)
	_, err = client.Prepare(t.Context(), j.PrepareRequest)
	require.NoError(t, err)
	return j
}

// copyAt returns a copy on a node's drive d0.
func copyAt(name string, urls ...string) *apiv1.HeldCopy {
	return &apiv1.HeldCopy{Node: name, Urls: urls, Drive: "d0"}
}

// placeAll places every partition of a job at some copies, in the job's request to the worker and at the leader.
func (f *fixture) placeAll(j *nodetest.Job, copies ...*apiv1.HeldCopy) {
	j.Sources = nil
	manifest, err := dataset.ReadManifest(j.Manifest)
	require.NoError(f.t, err)
	for _, p := range manifest.Partitions {
		s := &apiv1.PartitionSource{Partition: p.Name, Copies: copies}
		f.leader.place(s)
		j.Sources = append(j.Sources, s)
	}
}

// prepare prepares a job at the worker, which must succeed.
func (f *fixture) prepare(j *nodetest.Job) {
	f.t.Helper()
	_, err := f.node.Prepare(f.t.Context(), j.PrepareRequest)
	require.NoError(f.t, err)
}

// fetch asks an agent for a mini-batch's frame.
func (f *fixture) fetch(base string, j *nodetest.Job, drive string, number, until uint64) (int, []byte) {
	f.t.Helper()
	link := fmt.Sprintf("%s/v1/minibatch?job=%s&epoch=%d&drive=%s&number=%d&until=%d", base, j.Digest,
		j.Plan.Options().Epoch, url.QueryEscape(drive), number, until)
	resp, err := f.client.Get(link)
	require.NoError(f.t, err)
	b, err := io.ReadAll(resp.Body)
	require.NoError(f.t, errors.Join(err, resp.Body.Close()))
	return resp.StatusCode, b
}

// metric returns the value of a metric, which must be there: its name with its labels, as the worker writes them.
func (f *fixture) metric(name string) float64 {
	f.t.Helper()
	resp, err := f.client.Get(f.base + "/metrics")
	require.NoError(f.t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(f.t, errors.Join(err, resp.Body.Close()))
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			require.NoError(f.t, err, line)
			return v
		}
	}
	require.Fail(f.t, "the worker has no such metric", "%s in\n%s", name, text)
	return 0
}

// sameAsHolder checks that every mini-batch of the worker is byte for byte the holder's. A request that fails
// temporarily is repeated, as launchers do.
func (f *fixture) sameAsHolder(j *nodetest.Job, holder *node.Agent) {
	f.t.Helper()
	for s := range j.Plan.All() {
		until := s.FirstFragment + uint64(s.Fragments)
		for n := s.FirstFragment; n < until; n++ {
			status, want := f.fetch(holder.URLs()[0], j, "d0", n, until)
			require.Equal(f.t, http.StatusOK, status, "%s", want)
			var got []byte
			await(f.t, fmt.Sprintf("mini-batch %d", n), func() bool {
				status, got = f.fetch(f.base, j, f.drive, n, until)
				require.True(f.t, status == http.StatusOK || status == http.StatusServiceUnavailable, "%s", got)
				return status == http.StatusOK
			})
			require.True(f.t, bytes.Equal(want, got), "mini-batch %d", n)
		}
	}
}

// proxy is a proxy in front of a holder. It changes answers as a test sets.
type proxy struct {
	*httptest.Server
	mu     sync.Mutex
	change func(*http.Response) error // of answers with bytes of partitions; nil: none
	ranges int                        // how many answers went through
	plain  bool                       // whether requests go on without asking for a checksum
}

func newProxy(t testing.TB, to *node.Agent) *proxy {
	target, err := url.Parse(to.URLs()[0])
	require.NoError(t, err)
	p := &proxy{}
	back := &httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0)}
	back.Rewrite = func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.plain {
			r.Out.Header.Del("Te")
		}
	}
	back.ModifyResponse = func(r *http.Response) error {
		p.mu.Lock()
		change := p.change
		p.ranges++
		p.mu.Unlock()
		if change == nil || r.Request.Method != http.MethodGet {
			return nil
		}
		return change(r)
	}
	p.Server = httptest.NewServer(back)
	t.Cleanup(p.Close)
	return p
}

// do sets how the proxy changes answers, and whether it asks for them without checksums.
func (p *proxy) do(change func(*http.Response) error, plain bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change, p.plain = change, plain
}

// asked returns how many answers went through.
func (p *proxy) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ranges
}

// TestMain fails when a test leaves goroutines behind.
func TestMain(m *testing.M) { leaks.Run(m) }
