package control

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/ticket"
)

// beatOnce sends one heartbeat of a node and returns the leader's answer.
func (n *fakeNode) beatOnce(t testing.TB, c *client, fence, seen uint64) *apiv1.HeartbeatResponse {
	t.Helper()
	n.mu.Lock()
	st := proto.CloneOf(n.status)
	n.mu.Unlock()
	r, err := callControl(t, c, func(ctx context.Context, k apiv1connect.ControlClient) (*apiv1.HeartbeatResponse,
		error) {
		return k.Heartbeat(ctx, &apiv1.HeartbeatRequest{Status: st, ReturnedFence: fence, ReturnedSeen: seen})
	})
	require.NoError(t, err)
	return r
}

// askFor describes a GET of a grant's first mini-batch.
func askFor(k *consumer, g *apiv1.Grant) *ticket.Ask {
	return &ticket.Ask{Job: k.digest, Epoch: g.Epoch, Drive: g.Drive, Number: g.From}
}

// TestAGrantCarriesItsTicket: the lease's node accepts the ticket until the lease comes back, and no other node
// accepts it.
func TestAGrantCarriesItsTicket(t *testing.T) {
	t.Parallel()
	s, c := start(t, testOptions(t))
	n := liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 200)}})
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", Plan: &apiv1.PlanOptions{SplitBatches: 2}})
	own, _ := process(t, s)
	k := newConsumer(t, own, st.Id, 0)
	require.NoError(t, k.attach(nil))
	r, err := k.lease(1, 0, 20)
	require.NoError(t, err)
	require.NotEmpty(t, r.Grants)
	g := r.Grants[0]
	var signed apiv1.SignedTicket
	require.NoError(t, proto.Unmarshal(g.Ticket, &signed))
	said := &apiv1.Ticket{}
	require.NoError(t, proto.Unmarshal(signed.Ticket, said))
	assert.InDelta(t, seconds(time.Now().Add(ticketTime)), said.ExpiresSeconds, 120)
	said.ExpiresSeconds = 0
	assert.True(t, proto.Equal(&apiv1.Ticket{
		Key: r.Fence, Node: "n", Incarnation: "n-1", Drive: "d", Digest: k.digest[:], From: g.From, To: g.To,
		Lease: g.Lease, Job: st.Id,
		SessionFence: r.Fence, SessionSeq: said.SessionSeq, Owner: "job/" + st.Id,
	}, said), "%v", said)

	here, there := ticket.NewVerifier("n", "n-1", time.Now), ticket.NewVerifier("m", "m-1", time.Now)
	beat := n.beatOnce(t, c, 0, 0)
	assert.True(t, beat.TicketsRequired)
	assert.Empty(t, beat.Returned)
	here.Learn(beat)
	there.Learn(beat)
	shown := apiv1.EncodeTicket(g.Ticket)
	_, err = here.Check(shown, identity.Identity{}, askFor(k, g))
	require.NoError(t, err)
	_, err = there.Check(shown, identity.Identity{}, askFor(k, g))
	assert.ErrorIs(t, err, ticket.ErrVoid)

	// The rank detaches: the answers to heartbeats name the returned leases until the node confirms them.
	_, err = callControl(t, k.c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.ReleaseResponse,
		error) {
		return m.Release(ctx, &apiv1.ReleaseRequest{Id: k.id, Session: k.session, Reason: "detach"})
	})
	require.NoError(t, err)
	var lost *apiv1.HeartbeatResponse
	require.Eventually(t, func() bool {
		// The node's own heartbeats confirm nothing, as if every answer were lost.
		lost = n.beatOnce(t, c, beat.Fence-1, beat.ReturnedSeen+100) // of another leader: it means nothing to this one
		return len(lost.Returned) > 0
	}, time.Minute, time.Millisecond)
	assert.Contains(t, lost.Returned, g.Lease)
	here.Learn(lost)
	_, err = here.Check(shown, identity.Identity{}, askFor(k, g))
	assert.ErrorIs(t, err, ticket.ErrVoid, "replayed")
	assert.NotContains(t, n.beatOnce(t, c, lost.Fence, lost.ReturnedSeen).Returned, g.Lease)
}

// TestTicketsAreIssuedAnewInTime: the leader issues the tickets of held leases that were not fetched again in time,
// and a new leader issues its own tickets for the leases that it adopts.
func TestTicketsAreIssuedAnewInTime(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.LeaseTTL = time.Hour
	s, err := Start(patient(t), o)
	require.NoError(t, err)
	require.Eventually(t, s.Leads, time.Minute, time.Millisecond)
	c := newClient(s)
	n := newNode(t, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 200)}})
	stop := n.beats(t, c)
	await(t, c, "n")
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", Plan: &apiv1.PlanOptions{SplitBatches: 2}})
	k := attachedRank(t, c, st.Id, 0)
	for len(k.held) < 2 {
		_, err := k.lease(2, 0, 20)
		require.NoError(t, err)
	}
	r, err := k.lease(0, 0, 0)
	require.NoError(t, err)
	assert.Empty(t, r.Tickets, "they are new")
	l := s.leading.Load()
	var old uint64
	l.mu.Lock()
	for id := range k.held {
		old = id
		l.mu.jobs[st.Id].launchers[0].ticketsIssued[id] = time.Now().Add(-ticketRenew)
		break
	}
	l.mu.Unlock()
	r, err = k.lease(0, 0, 0)
	require.NoError(t, err)
	require.Len(t, r.Tickets, 1)
	assert.Equal(t, old, r.Tickets[0].Lease)
	verify := ticket.NewVerifier("n", "n-1", time.Now)
	verify.Learn(n.beatOnce(t, c, 0, 0))
	_, err = verify.Check(apiv1.EncodeTicket(r.Tickets[0].Ticket), identity.Identity{}, askFor(k, k.held[old]))
	assert.NoError(t, err)
	r, err = k.lease(0, 0, 0)
	require.NoError(t, err)
	assert.Empty(t, r.Tickets)
	before := k.held[old].Ticket
	stop()
	require.NoError(t, s.Close())

	_, c = start(t, o)
	k.c = c
	n.beats(t, c)
	await(t, c, "n")
	require.Eventually(t, func() bool {
		r, err = k.lease(0, 0, 0)
		return assert.NoError(t, err) && len(r.Tickets) == 2
	}, time.Minute, time.Millisecond)
	assert.Len(t, k.held, 2, "they were adopted")
	beat := n.beatOnce(t, c, 0, 0)
	verify.Learn(beat)
	for _, x := range r.Tickets {
		said, err := verify.Check(apiv1.EncodeTicket(x.Ticket), identity.Identity{}, askFor(k, k.held[x.Lease]))
		require.NoError(t, err)
		assert.Equal(t, beat.Fence, said.Key)
	}
	_, err = verify.Check(apiv1.EncodeTicket(before), identity.Identity{}, askFor(k, k.held[old]))
	assert.NoError(t, err, "what its predecessor signed is good as long")
}

// TestLaunchersOlderThanTickets: launchers without tickets are served if the operator's options allow it.
func TestLaunchersOlderThanTickets(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.TicketsOptional = true
	_, c := start(t, o)
	n := newNode(t, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 200)}})
	beat := n.beatOnce(t, c, 0, 0)
	assert.False(t, beat.TicketsRequired)
	assert.Len(t, beat.TicketKey.GetPublicKey(), 32, "those that are shown are checked")
}
