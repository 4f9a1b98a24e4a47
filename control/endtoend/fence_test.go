package endtoend

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/trainmgr/remote"
)

// fenceOf returns the greatest fence that a node reports to have seen.
func fenceOf(t testing.TB, a *node.Agent) uint64 {
	t.Helper()
	resp, err := http.Get(a.URLs()[0] + "/metrics")
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, "millrace_node_fence "); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			require.NoError(t, err)
			return uint64(f)
		}
	}
	t.Fatal("the node tells no fence")
	return 0
}

// TestALeaderThatWasReplacedBeforeANodesRestart: a restarted node refuses the replaced leader and accepts the present
// leader, whose jobs go on.
func TestALeaderThatWasReplacedBeforeANodesRestart(t *testing.T) {
	data := files(t, 700, 401)
	want := onOneMachine(t, data, 1)
	o := controlOptions(t.TempDir())
	o.Logger, o.Listen = nil, freePorts(t, 1)[0]
	member := start(t, role{Member: &o})
	url := member.said[0]
	config := nodeConfig("n0", []string{url}, makeDrive(t, "file", data))
	config.StateDir = t.TempDir()
	a := startNode(t, config, node.Options{})
	c := dial(t, url)
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	st, err := c.Submit(t.Context(), &apiv1.JobSpec{Pipeline: []byte(document), Plan: plan()})
	require.NoError(t, err)
	old := fenceOf(t, a)
	require.Positive(t, old)
	member.kill()
	start(t, member.role) // the next term of the same etcd
	require.Eventually(t, func() bool { return fenceOf(t, a) > old }, time.Minute, 20*time.Millisecond)
	latest := fenceOf(t, a)
	require.NoError(t, a.Close())

	a = startNode(t, config, node.Options{})
	defer func() { assert.NoError(t, a.Close()) }()
	require.Equal(t, latest, fenceOf(t, a))
	client := apiv1connect.NewNodeClient(http.DefaultClient, a.URLs()[0])
	call := func(fence uint64) error {
		ctx, info := connect.NewClientContext(t.Context())
		info.RequestHeader().Set(apiv1.FenceHeader, fmt.Sprint(fence))
		_, err := client.Finish(ctx, &apiv1.FinishRequest{Job: st.Digest})
		return err
	}
	err = call(old)
	require.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, fmt.Sprintf("a leader of fence %d was here", latest))
	j, err := c.Attach(t.Context(), st.Id, remote.AttachOptions{})
	require.NoError(t, err)
	got := newResult()
	for mb, err := range j.MiniBatches(t.Context()) {
		require.NoError(t, err)
		got.add(t, mb)
	}
	require.NoError(t, j.Close())
	check(t, want, got, false)
	require.NoError(t, call(latest))
}
