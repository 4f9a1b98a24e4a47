package node

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/node/drives"
	"github.com/millrace/millrace/host/node/heartbeat"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/sdk/dataset"
)

// member is a member of a control plane, as far as a node sees one.
type member struct {
	apiv1connect.UnimplementedControlHandler
	url string

	mu     sync.Mutex
	leads  bool
	leader string // url that it knows
	answer *apiv1.HeartbeatResponse
	err    error
	beats  []*apiv1.NodeStatus
	heard  [2]uint64 // of leases that came back: the last beat's
}

func newMember(t *testing.T) *member {
	m := &member{answer: &apiv1.HeartbeatResponse{Protocol: apiv1.Protocol, Leader: "m", Fence: 1,
		IntervalSeconds: 0.01}}
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewControlHandler(m))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	m.url = s.URL
	return m
}

func (m *member) Heartbeat(_ context.Context, r *apiv1.HeartbeatRequest) (*apiv1.HeartbeatResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beats = append(m.beats, r.GetStatus())
	m.heard = [2]uint64{r.GetReturnedFence(), r.GetReturnedSeen()}
	if m.err != nil {
		return nil, m.err
	}
	if !m.leads {
		err := connect.NewError(connect.CodeFailedPrecondition, errors.New("another member leads"))
		d, derr := connect.NewErrorDetail(&apiv1.NotLeader{LeaderUrl: m.leader})
		if derr != nil {
			return nil, derr
		}
		err.AddDetail(d)
		return nil, err
	}
	return proto.Clone(m.answer).(*apiv1.HeartbeatResponse), nil
}

// set changes what a member does, and forgets the beats that it had.
func (m *member) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	m.beats = nil
}

// had returns the beats so far.
func (m *member) had() []*apiv1.NodeStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]*apiv1.NodeStatus(nil), m.beats...)
}

// beat sends one heartbeat more.
func (f *fixture) beat(members ...string) (time.Duration, error) {
	return heartbeat.New(heartbeat.Options{
		Members: members, Client: f.Agent.toControl, Fence: f.fence, Log: f.log, Learn: f.tickets.Learn,
		Status: func() (*apiv1.NodeStatus, error) { return f.status.read(true) },
	}).Send(f.t.Context())
}

func TestHeartbeatsFollowTheLeader(t *testing.T) {
	files := content(t)
	one, two, three := newMember(t), newMember(t), newMember(t)
	three.set(func() { three.leads, three.answer.Fence = true, 7 })
	one.set(func() { one.leader = three.url })
	f := start(t, func(c *Config) { c.Control = []string{one.url, two.url, three.url} }, fill(t, "mem", files))
	f.wait("beats", func() bool { return len(three.had()) > 3 })
	assert.Empty(t, two.had(), "the first member says who leads")
	assert.Len(t, one.had(), 1, "and is not asked again")
	beats := three.had()
	first, last := beats[0], beats[len(beats)-1]
	assert.Equal(t, "n0", first.Name)
	assert.NotEmpty(t, first.Incarnation)
	assert.Equal(t, f.URLs(), first.Urls)
	assert.EqualValues(t, apiv1.Protocol, first.Protocol)
	assert.Equal(t, "test", first.Version)
	assert.InDelta(t, float64(time.Now().Unix()), first.ClockSeconds, 3600)
	f.wait("the drive to be told", func() bool {
		b := three.had()
		last = b[len(b)-1]
		return last.Drives[0].State == "ready"
	})
	assert.Len(t, last.Drives[0].Partitions, 3)
	f.wait("a beat without the inventory", func() bool { b := three.had(); return len(b[len(b)-1].Partitions) == 0 })

	// The inventory is sent when the leader asks for it, and again when it changes.
	three.set(func() { three.answer.WantInventory = true })
	f.wait("the inventory", func() bool { b := three.had(); return len(b) > 0 && len(b[len(b)-1].Partitions) == 3 })
	three.set(func() { three.answer.WantInventory = false })
	f.wait("a beat without the inventory",
		func() bool { b := three.had(); return len(b) > 0 && len(b[len(b)-1].Partitions) == 0 })
	before := three.had()[0].Inventory
	p := nodetest.Partition(t, 9, 60)
	require.NoError(t, f.manager.Drives()[0].Volume().Put(t.Context(), "new.parquet", int64(len(p)),
		bytes.NewReader(p)))
	_, err := f.node.Rescan(t.Context(), &apiv1.RescanRequest{})
	require.NoError(t, err)
	f.wait("the new partition", func() bool {
		b := three.had()
		return len(b[len(b)-1].Inventory) > 0 && string(b[len(b)-1].Inventory) != string(before)
	})
	found := false
	for _, b := range three.had() {
		found = found || len(b.Partitions) == 4 && len(b.Schemas) == 1
	}
	assert.True(t, found)

	// The leader changes. The old one, which does not know it yet, is not listened to.
	two.set(func() {
		two.leads, two.answer = true,
			&apiv1.HeartbeatResponse{Protocol: apiv1.Protocol, Leader: "two", Fence: 9, IntervalSeconds: 0.01}
	})
	three.set(func() { three.leads = false; three.leader = two.url })
	f.wait("beats to the new leader", func() bool { return len(two.had()) > 2 })
	three.set(func() { three.leads = true })
	two.set(func() { two.err = connect.NewError(connect.CodeUnavailable, errors.New("on its way down")) })
	f.wait("both to be asked", func() bool { return len(three.had()) > 2 && len(two.had()) > 2 })
	assert.EqualValues(t, 9, f.fence.Get())
	two.set(func() { two.err = nil })
	f.wait("beats to the leader", func() bool { return len(two.had()) > 2 })

	// A drain is reported at once.
	_, err = f.node.Drain(t.Context(), &apiv1.DrainRequest{Drain: true})
	require.NoError(t, err)
	f.wait("the drain to be told", func() bool { b := two.had(); return b[len(b)-1].Draining })
}

// TestAnUnannouncedDriveHasItsPartitions checks that a heartbeat in the moment between a drive's opening and its
// announcement lists what the inventory's digest stands for, since later heartbeats leave the lists out.
func TestAnUnannouncedDriveHasItsPartitions(t *testing.T) {
	f := start(t, nil, fill(t, "mem", content(t)))
	whole, err := f.status.read(true)
	require.NoError(t, err)
	require.Len(t, whole.Drives[0].Partitions, 3)
	unannounced := *f.status
	unannounced.drives = func() []drives.Status { return []drives.Status{{Name: "d0", State: "opening"}} }
	early, err := unannounced.read(true)
	require.NoError(t, err)
	require.Equal(t, whole.Inventory, early.Inventory)
	assert.Equal(t, whole.Drives[0].Partitions, early.Drives[0].Partitions)
}

// TestANodeThatIsRefused checks that a node goes on when the control plane refuses it, is too old, or is away, and that
// it serves no client then, because no client can have a lease.
func TestANodeThatIsRefused(t *testing.T) {
	files := content(t)
	m := newMember(t)
	m.set(func() { m.err = connect.NewError(connect.CodeFailedPrecondition, errors.New("drive d0 is node n9's")) })
	f := start(t, func(c *Config) { c.Control = []string{m.url, "http://127.0.0.1:1"} }, fill(t, "mem", files))
	f.wait("a beat", func() bool { return len(m.had()) > 0 })
	j := f.prepare(dataset.Options{})
	status, b, _ := f.get(f.link(j, "d0", 0, 1))
	assert.Equal(t, http.StatusServiceUnavailable, status, "nobody has a lease here: %s", b)
	_, err := f.beat(m.url)
	require.ErrorContains(t, err, "node n9's")
	m.set(func() { m.err, m.leads, m.answer.Protocol = nil, true, 0 })
	_, err = f.beat(f.control...)
	require.ErrorContains(t, err, "too old")
	_, err = f.beat("http://127.0.0.1:1")
	require.Error(t, err)
	m.set(func() { m.leads = false })
	_, err = f.beat(f.control...)
	require.ErrorContains(t, err, "knows no leader")
}
