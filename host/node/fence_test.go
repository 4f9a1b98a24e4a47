package node

import (
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// TestAnOlderLeaderIsRefused checks that a call with a fence below the latest is refused.
func TestAnOlderLeaderIsRefused(t *testing.T) {
	f := start(t, nil)
	call := func(fence string) error {
		ctx, info := connect.NewClientContext(t.Context())
		info.RequestHeader().Set(apiv1.FenceHeader, fence)
		_, err := f.node.Rescan(ctx, &apiv1.RescanRequest{})
		return err
	}
	require.NoError(t, call("5"))
	require.NoError(t, call("5"))
	err := call("4")
	assert.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err))
	assert.ErrorContains(t, err, "its fence is 4, a leader of fence 5 was here")
	require.NoError(t, call("6"))
	require.Error(t, call("5"))
	assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(call("x")))
}

// TestAFenceSurvivesARestart checks that after a restart the node refuses the calls and the answers of a leader that
// was replaced before it.
func TestAFenceSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	m := newMember(t)
	m.set(func() {
		m.leads, m.answer = true,
			&apiv1.HeartbeatResponse{Protocol: apiv1.Protocol, Leader: "m", Fence: 7, IntervalSeconds: 0.01}
	})
	begin := func() *fixture {
		return start(t, func(c *Config) { c.StateDir, c.Control = dir, []string{m.url} })
	}
	f := begin()
	f.wait("the leader's fence", func() bool { return f.fence.Get() == 7 })
	require.NoError(t, f.Close())

	m.set(func() { m.answer.Fence = 6 }) // it was away while another led
	f = begin()
	assert.EqualValues(t, 7, f.fence.Get())
	_, err := f.beat(f.control...)
	require.ErrorContains(t, err, "its fence is 6, a leader of fence 7 was here")
	call := func(fence string) error {
		ctx, info := connect.NewClientContext(t.Context())
		info.RequestHeader().Set(apiv1.FenceHeader, fence)
		_, err := f.node.Rescan(ctx, &apiv1.RescanRequest{})
		return err
	}
	assert.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(call("6")))
	require.NoError(t, call("8"))
	require.NoError(t, f.Close())

	f = begin()
	assert.EqualValues(t, 8, f.fence.Get())
	_, b, _ := f.get(f.base + "/metrics")
	assert.Contains(t, string(b), "millrace_node_fence 8")
	assert.Error(t, call("7"))
}
