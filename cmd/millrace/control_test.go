package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/contexts"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

// lineLog is where a command that goes on writes: whole lines can be waited for.
type lineLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lineLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lineLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// controlRun runs a control plane until the test ends, and returns its URL.
func controlRun(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var out, errs lineLog
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx,
			append([]string{
				"control", "run", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--output", "json", "--progress",
				"none",
			}, args...), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	}()
	t.Cleanup(func() {
		cancel()
		assert.Equal(t, exitDone, <-ended, errs.String())
	})
	var ready controlStarted
	require.Eventually(t, func() bool {
		return json.Unmarshal([]byte(out.String()), &ready) == nil || len(ended) > 0
	}, time.Minute, 10*time.Millisecond)
	require.Empty(t, ended, "it ended: %s", errs.String())
	return ready.URL
}

// stubNode is a storage node that holds a partition, which no test reads.
type stubNode struct {
	apiv1connect.UnimplementedNodeHandler
}

func (stubNode) Prepare(context.Context, *apiv1.PrepareRequest) (*apiv1.PrepareResponse, error) {
	return &apiv1.PrepareResponse{}, nil
}

func (stubNode) Measure(context.Context, *apiv1.MeasureRequest) (*apiv1.MeasureResponse, error) {
	return &apiv1.MeasureResponse{RowsPerSecond: 1000, Rows: 1000, ElapsedSeconds: 1}, nil
}

func (stubNode) Finish(context.Context, *apiv1.FinishRequest) (*apiv1.FinishResponse, error) {
	return &apiv1.FinishResponse{}, nil
}

func (stubNode) Drain(context.Context, *apiv1.DrainRequest) (*apiv1.DrainResponse, error) {
	return &apiv1.DrainResponse{}, nil
}

// startStub has a stub node beat until the test ends; it returns when the node is known.
func startStub(t *testing.T, url string) {
	t.Helper()
	_, h := apiv1connect.NewNodeHandler(stubNode{})
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	columns, err := api.EncodeColumns(columntypes.BinarySchema())
	require.NoError(t, err)
	digest := bytes.Repeat([]byte{7}, 32)
	client := apiv1connect.NewControlClient(http.DefaultClient, url)
	beat := func(ctx context.Context) bool {
		r, err := client.Heartbeat(ctx, &apiv1.HeartbeatRequest{Status: &apiv1.NodeStatus{
			Name: "node0", Incarnation: "1", Urls: []string{srv.URL}, Protocol: apiv1.Protocol, Version: "test",
			ClockSeconds: float64(time.Now().Unix()), Inventory: []byte{1},
			Partitions: []*apiv1.Partition{{
				Name: "day-1", Bytes: 1 << 20, Rows: 100_000, RowGroups: []int64{100_000}, ContentSha256: digest,
				Schema: digest,
			}},
			Schemas: []*apiv1.Schema{{Digest: digest, Columns: columns}},
			Drives: []*apiv1.Drive{{
				Name: "csd0", Uuid: "u", Computes: true, Threads: 1, Streams: 2, State: "ready",
				Partitions: []string{"day-1"},
			}},
		}})
		return err == nil && !r.WantInventory
	}
	ctx, cancel := context.WithCancel(context.Background())
	require.Eventually(t, func() bool { return beat(ctx) }, time.Minute, 10*time.Millisecond)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			beat(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// service runs every command that asks a control plane.
func service(t *testing.T, dir string, do func(args ...string)) {
	t.Helper()
	url := controlRun(t)
	startStub(t, url)
	do("jobs", "submit", "--control", url, "--pipeline", "rm1", "--name", "ads", "--t", "1500", "--wait")
	do("jobs", "list", "--control", url)
	do("control", "backup", dir+"/control.snapshot", "--control", url)
	do("jobs", "show", "ads", "--control", url)
	do("jobs", "checkpoint", "ads", "--out", dir+"/ads.token", "--control", url)
	do("nodes", "list", "--control", url)
	do("nodes", "show", "node0", "--control", url)
	do("nodes", "drain", "node0", "--control", url)
	do("jobs", "cancel", "ads", "--control", url)
	do("jobs", "watch", "ads", "--control", url)
	peer := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, l.Close())
		return "http://" + l.Addr().String()
	}
	url = controlRun(t, "--name", "m0", "--peers", "m0="+peer())
	next := peer()
	do("control", "members", "add", next, "--control", url)
	do("control", "members", "list", "--control", url)
	do("control", "members", "remove", next, "--control", url)
}

// TestMembersFromTheCommandLine checks that a member is added, joins, and is removed again, which ends it.
func TestMembersFromTheCommandLine(t *testing.T) {
	peer := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, l.Close())
		return "http://" + l.Addr().String()
	}
	url := controlRun(t, "--name", "m0", "--peers", "m0="+peer())
	t.Setenv(contexts.ControlEnv, url)
	assert.Regexp(t, `(?m)^m0 +[0-9a-f]+ +http://127.0.0.1:[0-9]+ +votes$`, must(t, "control", "members", "list"))
	next := peer()
	out := must(t, "control", "members", "add", next)
	assert.Contains(t, out, "--peers NAME="+next+" --join "+url)
	assert.Regexp(t, `(?m)^- +[0-9a-f]+ +`+next+` +added, not started yet$`, must(t, "control", "members", "list"))

	ended := make(chan string, 1)
	go func() {
		code, _, errs := millrace(t, "control", "run", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--name", "m1",
			"--peers", "m1="+next, "--join", url, "--progress", "none")
		ended <- fmt.Sprint(code, " ", errs)
	}()
	state := func(want string) {
		require.Eventually(t, func() bool {
			code, out, _ := millrace(t, "control", "members", "list")
			return code == exitDone && regexp.MustCompile(`(?m)^m1 .* `+want+`$`).MatchString(out)
		}, time.Minute, 50*time.Millisecond)
	}
	state("votes")
	require.Eventually(t, func() bool { // etcd wants members to have been in touch for some seconds
		code, _, _ := millrace(t, "control", "members", "remove", "m1")
		return code == exitDone
	}, time.Minute, 200*time.Millisecond)
	select {
	case how := <-ended:
		assert.Contains(t, how, fmt.Sprint(exitFailed))
		assert.Contains(t, how, "it was removed")
	case <-time.After(time.Minute):
		t.Error("a member that was removed goes on")
	}
	assert.NotContains(t, must(t, "control", "members", "list"), "m1")
	code, _, errs := millrace(t, "control", "members", "remove", "m0")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "the only one")
}

func TestAJobFromTheCommandLine(t *testing.T) {
	url := controlRun(t)
	startStub(t, url)
	t.Setenv(contexts.ControlEnv, url)
	out := must(t, "jobs", "submit", "--pipeline", "rm1", "--name", "ads", "--t", "1500", "--batch", "1000", "--wait")
	assert.Regexp(t, `(?m)^state +running$`, out)
	assert.Regexp(t, `(?m)^drives +1 at once, T/P wants 2$`, out)
	assert.Regexp(t, `(?m)^delivered +0 of 100 mini-batches`, out)
	id := strings.Fields(out)[1]
	assert.Equal(t, id,
		strings.Fields(must(t, "jobs", "submit", "--pipeline", "rm1", "--name", "ads", "--t", "1500", "--batch",
			"1000"))[1], "word for word the same")
	assert.Contains(t, must(t, "jobs", "list"), id)
	assert.Contains(t, must(t, "jobs", "show", "ads"), id)
	awaitText(t, "T/P", "jobs", "show", "ads", "--decisions")
	awaitText(t, "ready", "nodes", "list")
	assert.Contains(t, must(t, "nodes", "show", "node0"), "csd0")
	assert.Contains(t, must(t, "nodes", "drain", "node0"), "node node0 drains")
	awaitText(t, "draining", "nodes", "list")
	assert.Contains(t, must(t, "nodes", "drain", "node0", "--undo"), "takes splits again")
	assert.Contains(t, must(t, "jobs", "cancel", id), "is cancelled")
	assert.Contains(t, must(t, "jobs", "watch", id), "cancelled")

	must(t, "jobs", "submit", "--pipeline", "rm1", "--name", "two")
	for _, c := range []struct {
		says string
		code int
		args []string
	}{
		{"runs already", exitFailed, []string{"jobs", "submit", "--pipeline", "rm1", "--name", "two", "--seed", "1"}},
		{"no job", exitFailed, []string{"jobs", "show", "nobody"}},
		{
			"no live node holds one", exitFailed, []string{
				"jobs", "submit", "--pipeline", "rm1", "--partitions", "day-2*",
			},
		},
		{"want 1 to 63", exitFailed, []string{"jobs", "submit", "--pipeline", "rm1", "--name", "Ads!"}},
		{
			"checkpoint token", exitFailed, []string{
				"jobs", "submit", "--pipeline", "rm1", "--resume", file(t, "token", "no token"),
			},
		},
		{"no node \"nobody\"", exitFailed, []string{"nodes", "show", "nobody"}},
		{"nobody", exitFailed, []string{"nodes", "drain", "nobody"}},
		{"--pipeline is wanted", exitUsage, []string{"jobs", "submit"}},
		{"control plane", exitUsage, []string{"jobs", "list", "--control", "ftp://x"}},
		{
			"does not answer", exitFailed, []string{
				"jobs", "list", "--control", "http://127.0.0.1:1", "--patience", "100ms",
			},
		},
	} {
		code, _, errs := millrace(t, c.args...)
		assert.Equal(t, c.code, code, c.args)
		assert.Contains(t, errs, c.says, c.args)
	}
}

func TestAControlPlaneThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		says string
		code int
		args []string
	}{
		{"--data is wanted", exitUsage, nil},
		{"TLS", exitFailed, []string{"--data", t.TempDir(), "--listen", "0.0.0.0:0"}},
		{
			"none of the peers", exitFailed, []string{
				"--data", t.TempDir(), "--listen", "127.0.0.1:0", "--name", "x", "--peers", "a=http://127.0.0.1:1",
			},
		},
		{
			"whole seconds", exitFailed, []string{
				"--data", t.TempDir(), "--listen", "127.0.0.1:0", "--leader-ttl", "1500ms",
			},
		},
	} {
		code, _, errs := millrace(t, append([]string{"control", "run"}, c.args...)...)
		assert.Equal(t, c.code, code, c.args)
		assert.Contains(t, errs, c.says, c.args)
	}
}
