package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/internal/leaks"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/tensor"
)

// fill puts files on a new drive and returns its URI.
func fill(t testing.TB, scheme string, files map[string][]byte) string {
	t.Helper()
	uri := "file:" + filepath.Join(t.TempDir(), "d.flash")
	if scheme == "mem" {
		uri = "mem:" + strings.ReplaceAll(t.Name(), "/", "-") + fmt.Sprint(rand.Uint32())
	}
	dev, err := sdk.Create(t.Context(), uri+"?size=8MiB&slm=32MiB", sdk.DeviceOptions{})
	require.NoError(t, err)
	vol, err := volume.Open(t.Context(), dev)
	require.NoError(t, err)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		require.NoError(t, vol.Put(t.Context(), name, int64(len(files[name])), bytes.NewReader(files[name])))
	}
	if scheme == "mem" { // it lives as long as somebody has it open
		t.Cleanup(func() { assert.NoError(t, dev.Close()) })
		return uri
	}
	require.NoError(t, dev.Close())
	return uri
}

// remote is a drive behind NVMe/TCP that can be killed and brought back.
type remote struct {
	t      testing.TB
	path   string
	addr   string
	target *tcp.Target
	drive  *csd.Drive
	done   chan error
}

const nqn = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-4333-8444-555555555555"

// serveDrive serves the drive in a file.
func serveDrive(t testing.TB, uri string) *remote {
	t.Helper()
	r := &remote{t: t, path: strings.TrimPrefix(uri, "file:"), addr: "127.0.0.1:0"}
	r.start()
	t.Cleanup(r.kill)
	return r
}

func (r *remote) start() {
	r.t.Helper()
	drive, err := csd.Open(csd.Options{Path: r.path, SLMBytes: 32 << 20, NQN: nqn})
	require.NoError(r.t, err)
	target, err := tcp.NewTarget(tcp.TargetOptions{})
	require.NoError(r.t, err)
	require.NoError(r.t, target.Add(drive.Subsystem()))
	l, err := net.Listen("tcp", r.addr)
	require.NoError(r.t, err)
	r.addr = l.Addr().String()
	done := make(chan error, 1)
	go func() { done <- target.Serve(l) }()
	r.drive, r.target, r.done = drive, target, done
}

// kill ends the target, as a machine that loses power does.
func (r *remote) kill() {
	if r.target == nil {
		return
	}
	assert.NoError(r.t, r.target.Close())
	assert.ErrorIs(r.t, <-r.done, tcp.ErrTargetClosed)
	assert.NoError(r.t, r.drive.Close())
	r.target = nil
}

func (r *remote) uri() string { return "tcp://" + r.addr + "/" + nqn }

// fixture is an agent under test.
type fixture struct {
	*Agent
	t      testing.TB
	client *http.Client
	node   apiv1connect.NodeClient
	base   string
	// control are the members that the configuration names.
	control []string
}

// start starts an agent on drives by URI, called d0, d1, ...
func start(t testing.TB, change func(*Config), uris ...string) *fixture {
	t.Helper()
	c := DefaultConfig()
	c.Name, c.Listen, c.Measure = "n0", []string{"127.0.0.1:0"}, Duration(time.Millisecond)
	c.Runs.BusyWait = Duration(time.Minute) // however loaded the machine is
	for i, uri := range uris {
		c.Drives = append(c.Drives, DriveConfig{Name: fmt.Sprintf("d%d", i), URI: uri})
	}
	o := Options{Version: "test", Probe: 20 * time.Millisecond, Device: quick}
	if change != nil {
		change(&c)
	}
	if os.Getenv("MILLRACE_LOG") != "" {
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return startWith(t, c, o)
}

// quick gives a drive that is away up soon.
func quick(_ string, o *sdk.DeviceOptions) { o.TCP.GiveUp = 100 * time.Millisecond }

func startWith(t testing.TB, c Config, o Options) *fixture {
	t.Helper()
	a, err := Start(t.Context(), c, o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, a.Close()) })
	f := &fixture{Agent: a, t: t, control: c.Control}
	f.client, err = identity.HTTPClient(identity.Options{})
	require.NoError(t, err)
	t.Cleanup(f.client.CloseIdleConnections)
	f.base, err = identity.BaseURL(a.URLs()[0])
	require.NoError(t, err)
	f.node = apiv1connect.NewNodeClient(f.client, f.base)
	if len(c.Drives) > 0 {
		f.wait("drives", func() bool { return f.unready() == "" })
	}
	return f
}

func apiv1connectNode(c *http.Client, base string) apiv1connect.NodeClient {
	return apiv1connect.NewNodeClient(c, base)
}

// wait waits until something holds: the test's own time limit ends it.
func (f *fixture) wait(what string, holds func() bool) {
	f.t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(2 * time.Millisecond) {
		require.True(f.t, time.Now().Before(end), "%s: never", what)
	}
}

// describeJob makes a job of what the node says that it holds, as the control plane does: of all partitions, or those
// named.
func (f *fixture) describeJob(text string, o dataset.Options, names ...string) *nodetest.Job {
	f.t.Helper()
	return f.describeJobWith(nil, text, o, names...)
}

// describeJobWith does what describeJob does for a pipeline that calls functions of modules.
func (f *fixture) describeJobWith(modules []pipeline.Module, text string, o dataset.Options,
	names ...string) *nodetest.Job {
	f.t.Helper()
	r, err := f.node.Describe(f.t.Context(), &apiv1.DescribeRequest{})
	require.NoError(f.t, err)
	var list []dataset.Partition
	var columns []columntypes.Column
	for _, p := range r.Status.Partitions {
		found := len(names) == 0
		for _, n := range names {
			found = found || n == p.Name
		}
		if !found {
			continue
		}
		list = append(list, dataset.Partition{Name: p.Name, Bytes: p.Bytes, Rows: p.Rows, RowGroups: p.RowGroups,
			Content: dataset.Digest(p.ContentSha256)})
		for _, s := range r.Status.Schemas {
			if bytes.Equal(s.Digest, p.Schema) {
				columns, err = api.DecodeColumns(s.Columns)
				require.NoError(f.t, err)
			}
		}
	}
	return nodetest.NewJob(f.t, text, o, list, columns, modules...)
}

// prepare makes a job and hands it over.
func (f *fixture) prepare(o dataset.Options, names ...string) *nodetest.Job {
	f.t.Helper()
	j := f.describeJob(nodetest.Document, o, names...)
	_, err := f.node.Prepare(f.t.Context(), j.PrepareRequest)
	require.NoError(f.t, err)
	return j
}

// link is the URL of a mini-batch.
func (f *fixture) link(j *nodetest.Job, drive string, number, until uint64) string {
	return fmt.Sprintf("%s/v1/minibatch?job=%s&epoch=%d&drive=%s&number=%d&until=%d", f.base, j.Digest,
		j.Plan.Options().Epoch, url.QueryEscape(drive), number, until)
}

// get fetches something.
func (f *fixture) get(link string, header ...string) (status int, body []byte, h http.Header) {
	f.t.Helper()
	status, body, h, err := f.try(f.t.Context(), link, header...)
	require.NoError(f.t, err)
	return status, body, h
}

func (f *fixture) try(ctx context.Context, link string, header ...string) (int, []byte, http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return 0, nil, nil, err
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := f.client.Do(r)
	if err != nil {
		return 0, nil, nil, err
	}
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, b, resp.Header, errors.Join(err, resp.Body.Close())
}

// frame fetches a mini-batch's frame.
func (f *fixture) frame(j *nodetest.Job, drive string, number, until uint64) []byte {
	f.t.Helper()
	status, b, h := f.get(f.link(j, drive, number, until))
	require.Equal(f.t, http.StatusOK, status, "%s", b)
	require.Equal(f.t, apiv1.FrameType, h.Get("Content-Type"))
	mb, err := tensor.ReadFrame(b)
	require.NoError(f.t, err)
	fragment, err := j.Plan.Fragment(number)
	require.NoError(f.t, err)
	require.Equal(f.t, tensor.Name{Job: j.Digest, Epoch: j.Plan.Options().Epoch, Number: fragment.MiniBatch}, mb.Name)
	return b
}

// epoch fetches every mini-batch of the plan from one drive, split by split.
func (f *fixture) epoch(j *nodetest.Job, drive string) [][]byte {
	f.t.Helper()
	frames := make([][]byte, j.Plan.MiniBatches())
	for s := range j.Plan.All() {
		for i := range uint64(s.Fragments) {
			n := s.FirstFragment + i
			frames[n] = f.frame(j, drive, n, s.FirstFragment+uint64(s.Fragments))
		}
	}
	return frames
}

// truth is the same job's mini-batches from a manager in this process, by the reference engine.
func truth(t testing.TB, files map[string][]byte, j *nodetest.Job) [][]byte {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		paths = append(paths, filepath.Join(dir, name))
		require.NoError(t, os.WriteFile(paths[len(paths)-1], files[name], 0o600))
	}
	d, err := host.OpenFiles(t.Context(), source.ParseLocations(paths...), host.DriveOptions{Engine: host.EngineReference})
	require.NoError(t, err)
	m, err := host.NewManager(host.Options{}, d)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	spec, err := pipeline.Parse(j.Pipeline)
	require.NoError(t, err)
	require.NoError(t, m.Prepare(t.Context(), &api.Job{Digest: j.Digest, Pipeline: spec, Plan: j.Plan.Options()}))
	frames := make([][]byte, j.Plan.MiniBatches())
	for s := range j.Plan.All() {
		st, err := m.Open(t.Context(),
			api.SplitRequest{Job: j.Digest, Drive: "files", Epoch: j.Plan.Options().Epoch, Split: s})
		require.NoError(t, err)
		for {
			mb, err := st.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			frames[mb.Name.Number], err = tensor.AppendFrame(nil, mb)
			require.NoError(t, err)
			mb.Release()
		}
		require.NoError(t, st.Close())
	}
	return frames
}

// TestMain fails when a test leaves goroutines behind.
func TestMain(m *testing.M) { leaks.Run(m) }
