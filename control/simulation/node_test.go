package simulation

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	agent "github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/node/nodetest"
	signing "github.com/millrace/millrace/host/ticket"
	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
)

// testedNode is a storage node that the suite drives. It has one job, of one partition, whose first mini-batches are
// [0, 4). The leader with fence 7 has answered it.
type testedNode interface {
	// stop ends the node without a word, and start starts it once more.
	stop()
	start()
	// beat waits for a heartbeat that follows the call, and returns what it says.
	beat() (incarnation string, draining bool)
	drain(drain bool)
	// answer has the leader with a fence answer heartbeats: these leases returned to the ledger. It returns when the node
	// has the answer.
	answer(fence uint64, returned ...uint64)
	// sign signs a ticket of a lease of [0, 4), for the node's present incarnation. fence is that of the leader.
	sign(lease, fence, generation uint64)
	// fetch asks for a mini-batch by the ticket of a lease. It returns "" if the node does not give the mini-batch.
	fetch(lease, number uint64) string
}

// TestNodeSuite checks that the model of a node behaves as package host/node.
func TestNodeSuite(t *testing.T) {
	runSuite(t, nodeSuite, map[string]func(t *testing.T) testedNode{"model": newModelNode, "host/node": newAgentNode})
}

// nodeSuite holds what leaders and launchers rely on.
var nodeSuite = map[string]func(t *testing.T, n testedNode){
	"a start is another incarnation, which voids tickets": func(t *testing.T, n testedNode) {
		before, _ := n.beat()
		n.sign(1, 7, 1)
		require.NotEmpty(t, n.fetch(1, 0))
		n.stop()
		assert.Empty(t, n.fetch(1, 0), "a dead node gives nothing")
		n.start()
		n.answer(7)
		after, _ := n.beat()
		assert.NotEqual(t, before, after)
		assert.Empty(t, n.fetch(1, 0))
		n.sign(2, 7, 1)
		assert.NotEmpty(t, n.fetch(2, 0))
	},
	"a node that drains says so, serves what it has begun, and begins nothing": func(t *testing.T, n testedNode) {
		n.sign(1, 7, 1)
		require.NotEmpty(t, n.fetch(1, 0))
		n.drain(true)
		_, draining := n.beat()
		assert.True(t, draining)
		assert.NotEmpty(t, n.fetch(1, 1))
		n.drain(false)
		_, draining = n.beat()
		assert.False(t, draining)
		n.stop()
		n.start()
		n.answer(7)
		n.drain(true)
		n.sign(2, 7, 2)
		assert.Empty(t, n.fetch(2, 0))
		n.drain(false)
		assert.NotEmpty(t, n.fetch(2, 0))
	},
	"a lease that came back is refused from then on": func(t *testing.T, n testedNode) {
		n.sign(1, 7, 1)
		n.sign(2, 7, 1)
		require.NotEmpty(t, n.fetch(1, 0))
		n.answer(7, 1)
		assert.Empty(t, n.fetch(1, 1))
		assert.NotEmpty(t, n.fetch(2, 1))
		n.answer(8)
		assert.Empty(t, n.fetch(1, 1), "a later leader does not bring the lease back")
		assert.NotEmpty(t, n.fetch(2, 2), "the tickets of a former leader stay good")
	},
	"a former leader is not believed": func(t *testing.T, n testedNode) {
		n.sign(1, 7, 1)
		n.answer(8)
		n.answer(7, 1)
		assert.NotEmpty(t, n.fetch(1, 0))
	},
	"a node that was started has no leader until one answers, and remembers the greatest fence": func(t *testing.T,
		n testedNode) {
		n.answer(8)
		n.stop()
		n.start()
		n.answer(7)
		n.sign(1, 7, 1)
		assert.Empty(t, n.fetch(1, 0))
		n.answer(8)
		n.sign(2, 8, 1)
		assert.NotEmpty(t, n.fetch(2, 0))
	},
	"a ticket of a leader that has not answered yet has to wait": func(t *testing.T, n testedNode) {
		n.sign(1, 9, 1)
		assert.Empty(t, n.fetch(1, 0))
		n.answer(9)
		assert.NotEmpty(t, n.fetch(1, 0))
	},
	"the ticket of a later session voids the tickets of earlier ones": func(t *testing.T, n testedNode) {
		n.sign(1, 7, 1)
		n.sign(2, 7, 2)
		require.NotEmpty(t, n.fetch(1, 0))
		require.NotEmpty(t, n.fetch(2, 0))
		assert.Empty(t, n.fetch(1, 1))
		assert.NotEmpty(t, n.fetch(2, 1))
	},
	"a lease ends at its last mini-batch": func(t *testing.T, n testedNode) {
		n.sign(1, 7, 1)
		assert.NotEmpty(t, n.fetch(1, 3))
		assert.Empty(t, n.fetch(1, 4))
	},
	"a mini-batch has one content, whenever it is asked for": func(t *testing.T, n testedNode) {
		n.sign(1, 7, 1)
		first := map[uint64]string{}
		for _, number := range []uint64{2, 0, 3, 1} {
			first[number] = n.fetch(1, number)
			require.NotEmpty(t, first[number])
		}
		assert.NotEqual(t, first[0], first[1])
		n.sign(2, 7, 2)
		for number, content := range first {
			assert.Equal(t, content, n.fetch(2, number), "a retry")
		}
		n.stop()
		n.start()
		n.answer(7)
		n.sign(3, 7, 3)
		for number, content := range first {
			assert.Equal(t, content, n.fetch(3, number), "another incarnation")
		}
	},
}

// modelNode drives the model on virtual time. The day has no launcher of the job whose tickets the suite signs: the
// tickets of a launcher's later session would void those of the suite.
type modelNode struct {
	t     *testing.T
	world *World
	node  *node
	epoch *epoch
}

func newModelNode(t *testing.T) testedNode {
	w := New(1, Options{})
	w.faultsEnd = start
	for _, n := range w.nodes[1:] {
		n.alive = false
	}
	m := &modelNode{t: t, world: w, node: w.nodes[0], epoch: w.jobs[0].editions[0].epochs[0]}
	for _, name := range m.epoch.edition.words {
		m.node.holds[name] = true
	}
	m.prepare()
	m.answer(7)
	return m
}

func (m *modelNode) stop()            { m.node.alive = false }
func (m *modelNode) prepare()         { m.node.prepared[m.epoch.edition.digest] = true }
func (m *modelNode) drain(drain bool) { m.node.draining = drain }

func (m *modelNode) start() {
	m.node.start()
	m.prepare()
}

// beat returns which incarnation the leading member knows, and what the node's heartbeats say.
func (m *modelNode) beat() (string, bool) {
	var leader *leaderNode
	for until := m.world.now.Add(5 * time.Second); m.world.now.Before(until); {
		_, err := m.world.Run(m.world.Executed + 1)
		require.NoError(m.t, err)
	}
	if l := m.world.leading(); l != nil {
		leader = l.term.nodes[m.node.name]
	}
	require.NotNil(m.t, leader)
	return fmt.Sprint(leader.incarnation), m.node.report().SelfDrains
}

func (m *modelNode) answer(fence uint64, returned ...uint64) { m.node.answered(fence<<40, returned) }

func (m *modelNode) sign(lease, fence, generation uint64) {
	m.world.tickets[lease] = ticket{
		fence: fence << 40, incarnation: m.node.incarnation, job: "suite",
		session: ledger.Session{Fence: 7, Generation: generation}, to: 4,
	}
}

func (m *modelNode) fetch(lease, number uint64) string {
	content, err := m.node.serve(m.epoch, lease, number)
	if err != nil {
		m.world.failure = nil // The launcher of a day that asks for a number beyond its lease has a fault.
		return ""
	}
	return content
}

// agentNode drives an agent of package host/node in this process.
type agentNode struct {
	apiv1connect.UnimplementedControlHandler
	t      *testing.T
	config agent.Config
	agent  *agent.Agent
	client apiv1connect.NodeClient
	base   string
	job    *nodetest.Job

	mu      sync.Mutex
	answers *apiv1.HeartbeatResponse
	beats   []*apiv1.NodeStatus
	signers map[uint64]*signing.Signer // The key is the fence of the leader.
	tickets map[uint64]string          // The key is the lease.
}

func newAgentNode(t *testing.T) testedNode {
	uri := "file:" + filepath.Join(t.TempDir(), "d.flash")
	device, err := sdk.Create(t.Context(), uri+"?size=8MiB&slm=32MiB", sdk.DeviceOptions{})
	require.NoError(t, err)
	vol, err := volume.Open(t.Context(), device)
	require.NoError(t, err)
	partition := nodetest.Partition(t, 1, 400)
	require.NoError(t, vol.Put(t.Context(), "a.parquet", int64(len(partition)), bytes.NewReader(partition)))
	require.NoError(t, device.Close())
	a := &agentNode{
		t: t, config: agent.DefaultConfig(), signers: map[uint64]*signing.Signer{}, tickets: map[uint64]string{},
		answers: &apiv1.HeartbeatResponse{Protocol: apiv1.Protocol, IntervalSeconds: 0.01},
	}
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewControlHandler(a))
	member := httptest.NewServer(mux)
	t.Cleanup(member.Close)
	a.config.Name, a.config.Listen, a.config.Control = "n0", []string{"127.0.0.1:0"}, []string{member.URL}
	a.config.StateDir, a.config.Drives = t.TempDir(), []agent.DriveConfig{{Name: "d0", URI: uri}}
	a.start()
	t.Cleanup(a.stop)
	a.answer(7)
	return a
}

// Heartbeat is the leader's answer.
func (a *agentNode) Heartbeat(_ context.Context, r *apiv1.HeartbeatRequest) (*apiv1.HeartbeatResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.beats = append(a.beats, r.Status)
	answer := proto.Clone(a.answers).(*apiv1.HeartbeatResponse)
	answer.ClockSeconds, answer.Leader, answer.TicketsRequired = float64(time.Now().Unix()), "m", true
	return answer, nil
}

func (a *agentNode) stop() {
	if a.agent != nil {
		assert.NoError(a.t, a.agent.Close())
	}
	a.agent = nil
}

// start starts the agent, and hands the job over.
func (a *agentNode) start() {
	a.locked(func() { a.answers.Fence, a.answers.Returned = 0, nil }) // No leader is known.
	var err error
	a.agent, err = agent.Start(a.t.Context(), a.config, agent.Options{Version: "test", Probe: 20 * time.Millisecond})
	require.NoError(a.t, err)
	a.base = a.agent.URLs()[0]
	a.client = apiv1connect.NewNodeClient(http.DefaultClient, a.base)
	require.Eventually(a.t, func() bool {
		r, err := a.client.Describe(a.t.Context(), &apiv1.DescribeRequest{})
		require.NoError(a.t, err)
		if len(r.Status.Partitions) == 0 || len(r.Status.Schemas) == 0 || r.Status.Drives[0].State != "ready" {
			return false
		}
		p := r.Status.Partitions[0]
		columns, err := api.DecodeColumns(r.Status.Schemas[0].Columns)
		require.NoError(a.t, err)
		a.job = nodetest.NewJob(a.t, nodetest.Document, dataset.Options{SplitBatches: 8}, []dataset.Partition{{
			Name: p.Name, Bytes: p.Bytes, Rows: p.Rows, RowGroups: p.RowGroups, Content: dataset.Digest(p.ContentSha256),
		}}, columns)
		return true
	}, time.Minute, 5*time.Millisecond)
	_, err = a.client.Prepare(a.t.Context(), a.job.PrepareRequest)
	require.NoError(a.t, err)
}

func (a *agentNode) locked(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	do()
}

// awaitBeats waits for three heartbeats: the first may have been under way, and the third follows the answer to the
// second.
func (a *agentNode) awaitBeats() (last *apiv1.NodeStatus) {
	begun := 0
	a.locked(func() { begun = len(a.beats) })
	require.Eventually(a.t, func() (came bool) {
		a.locked(func() {
			if came = len(a.beats) >= begun+3; came {
				last = a.beats[len(a.beats)-1]
			}
		})
		return came
	}, time.Minute, 5*time.Millisecond)
	return last
}

func (a *agentNode) beat() (string, bool) {
	last := a.awaitBeats()
	return last.Incarnation, last.Draining
}

func (a *agentNode) drain(drain bool) {
	_, err := a.client.Drain(a.t.Context(), &apiv1.DrainRequest{Drain: drain})
	require.NoError(a.t, err)
}

func (a *agentNode) signer(fence uint64) *signing.Signer {
	if a.signers[fence] == nil {
		s, err := signing.NewSigner(fence)
		require.NoError(a.t, err)
		a.signers[fence] = s
	}
	return a.signers[fence]
}

func (a *agentNode) answer(fence uint64, returned ...uint64) {
	a.locked(func() {
		a.answers.Fence, a.answers.Returned, a.answers.TicketKey = fence, returned, a.signer(fence).Key()
	})
	a.awaitBeats()
}

func (a *agentNode) sign(lease, fence, generation uint64) {
	incarnation, _ := a.beat()
	b, err := a.signer(fence).Sign(&apiv1.Ticket{
		Node: "n0", Incarnation: incarnation, Drive: "d0", Digest: a.job.Digest[:], To: 4, Lease: lease, Job: "job0",
		SessionFence: 7, SessionSeq: generation, Owner: "launcher/a", ExpiresSeconds: float64(time.Now().Unix() + 3600),
	})
	require.NoError(a.t, err)
	a.tickets[lease] = apiv1.EncodeTicket(b)
}

func (a *agentNode) fetch(lease, number uint64) string {
	link := fmt.Sprintf("%s%s?job=%s&epoch=0&drive=d0&number=%d&until=%d", a.base, apiv1.MiniBatchPath, a.job.Digest,
		number, number+4)
	r, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, link, nil)
	require.NoError(a.t, err)
	r.Header.Set(apiv1.TicketHeader, a.tickets[lease])
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(a.t, err)
	if response.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}
