package node

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/host/ticket"
	"github.com/millrace/millrace/sdk/dataset"
)

// granting is a control plane that signs tickets, and a node of its own with a prepared job.
type granting struct {
	*fixture
	m      *member
	signer *ticket.Signer
	j      *nodetest.Job
}

// grant starts both. change is of the node's configuration.
func grant(t *testing.T, change func(*Config)) *granting {
	t.Helper()
	g := &granting{m: newMember(t)}
	var err error
	g.signer, err = ticket.NewSigner(7)
	require.NoError(t, err)
	g.m.set(func() {
		g.m.leads, g.m.answer = true, &apiv1.HeartbeatResponse{
			Protocol: apiv1.Protocol, Leader: "m", Fence: 7, IntervalSeconds: 0.01,
			ClockSeconds: float64(time.Now().Unix()), TicketKey: g.signer.Key(), TicketsRequired: true,
		}
	})
	g.fixture = start(t, func(c *Config) {
		c.Control = []string{g.m.url}
		if change != nil {
			change(c)
		}
	}, fill(t, "mem", map[string][]byte{"a.parquet": nodetest.Partition(t, 1, 2000)}))
	g.wait("the leader's key", func() bool { return g.fence.Get() == 7 })
	g.j = g.prepare(dataset.Options{SplitBatches: 8})
	return g
}

// ticket is one for the job's first split.
func (g *granting) ticket(change func(*apiv1.Ticket)) *apiv1.Ticket {
	t := &apiv1.Ticket{
		Node: "n0", Incarnation: g.status.incarnation, Drive: "d0", Digest: g.j.Digest[:], From: 0, To: 8, Lease: 1,
		Job: "job-1", SessionFence: 7, SessionSeq: 1, Owner: "launcher/ads",
		ExpiresSeconds: float64(time.Now().Unix() + 600),
	}
	if change != nil {
		change(t)
	}
	return t
}

// show is a ticket as it is shown.
func (g *granting) show(change func(*apiv1.Ticket)) string {
	g.t.Helper()
	b, err := g.signer.Sign(g.ticket(change))
	require.NoError(g.t, err)
	return apiv1.EncodeTicket(b)
}

// ask asks for a mini-batch of the first split, and returns the status and the code of a refusal.
func (g *granting) ask(number uint64, header string) (status int, code string) {
	g.t.Helper()
	var more []string
	if header != "" {
		more = []string{apiv1.TicketHeader, header}
	}
	status, b, _ := g.get(g.link(g.j, "d0", number, number+16), more...)
	if status == http.StatusOK {
		return status, ""
	}
	var refusal struct{ Code, Message string }
	require.NoError(g.t, json.Unmarshal(b, &refusal), "%s", b)
	assert.NotEmpty(g.t, refusal.Message)
	return status, refusal.Code
}

// TestOnlyTheHolderOfALeaseGetsItsMiniBatches checks tickets without TLS, on loopback.
func TestOnlyTheHolderOfALeaseGetsItsMiniBatches(t *testing.T) {
	g := grant(t, nil)
	good := g.show(nil)
	for n := range uint64(8) {
		status, code := g.ask(n, good)
		require.Equal(t, http.StatusOK, status, code)
	}
	forger, err := ticket.NewSigner(7)
	require.NoError(t, err)
	forged, err := forger.Sign(g.ticket(nil))
	require.NoError(t, err)
	later, err := ticket.NewSigner(8)
	require.NoError(t, err)
	unheard, err := later.Sign(g.ticket(nil))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		number uint64
		header string
		status int
		code   string
	}{
		"no ticket":                   {0, "", http.StatusUnauthorized, "unauthenticated"},
		"noise":                       {0, "x", http.StatusUnauthorized, "unauthenticated"},
		"a forged one":                {0, apiv1.EncodeTicket(forged), http.StatusUnauthorized, "unauthenticated"},
		"a mini-batch past the lease": {8, good, http.StatusForbidden, "permission_denied"},
		"another job's ticket": {0, g.show(func(t *apiv1.Ticket) { t.Digest = make([]byte, 32) }),
			http.StatusForbidden, "permission_denied"},
		"another drive's": {0, g.show(func(t *apiv1.Ticket) { t.Drive = "d1" }), http.StatusForbidden,
			"permission_denied"},
		"another node's": {0, g.show(func(t *apiv1.Ticket) { t.Node = "n1" }), http.StatusForbidden,
			"permission_denied"},
		"of the node's former run": {0, g.show(func(t *apiv1.Ticket) { t.Incarnation = "before" }),
			http.StatusForbidden, "permission_denied"},
		"an expired one": {0, g.show(func(t *apiv1.Ticket) { t.ExpiresSeconds = 1 }),
			http.StatusForbidden, "permission_denied"},
		"of a leader not heard of yet": {0, apiv1.EncodeTicket(unheard), http.StatusServiceUnavailable, "unavailable"},
	} {
		status, code := g.ask(c.number, c.header)
		assert.Equal(t, c.status, status, name)
		assert.Equal(t, c.code, code, name)
	}
	status, _ := g.ask(0, good)
	assert.Equal(t, http.StatusOK, status, "the holder is not disturbed")

	// The lease comes back: replayed, its ticket is worth nothing; that of the next lease is.
	g.m.set(func() { g.m.answer.Returned, g.m.answer.ReturnedSeen = []uint64{1}, 33 })
	g.wait("the leader's word", func() bool { status, _ := g.ask(0, good); return status == http.StatusForbidden })
	next := g.show(func(t *apiv1.Ticket) { t.Lease, t.SessionSeq = 2, 2 })
	status, _ = g.ask(0, next)
	assert.Equal(t, http.StatusOK, status)
	g.wait("what it has heard of is said", func() bool {
		g.m.mu.Lock()
		defer g.m.mu.Unlock()
		return g.m.heard == [2]uint64{7, 33}
	})
	// So is the ticket of an earlier session of the rank, even if no heartbeat said that its lease has ended.
	status, code := g.ask(0, g.show(func(t *apiv1.Ticket) { t.Lease = 3 }))
	assert.Equal(t, http.StatusForbidden, status, code)

	// Another leader follows: tickets that its predecessor signed stay good.
	g.m.set(func() {
		g.m.answer.Fence, g.m.answer.TicketKey = 8, later.Key()
		g.m.answer.Returned = nil
	})
	g.wait("the later leader's key", func() bool {
		status, _ := g.ask(0, apiv1.EncodeTicket(unheard))
		return status != http.StatusServiceUnavailable
	})
	status, code = g.ask(0, next)
	assert.Equal(t, http.StatusOK, status, code)

	// The control plane is away: the node goes on serving the holders of leases.
	g.m.set(func() { g.m.leads = false })
	g.wait("a beat that is refused", func() bool { return len(g.m.had()) > 0 })
	status, code = g.ask(1, next)
	assert.Equal(t, http.StatusOK, status, code)
}

// TestWithoutTicketsAsBefore checks a node without a control plane, one whose control plane demands no tickets, and one
// that has not reached its control plane yet.
func TestWithoutTicketsAsBefore(t *testing.T) {
	alone := start(t, nil, fill(t, "mem", map[string][]byte{"a.parquet": nodetest.Partition(t, 1, 200)}))
	alone.frame(alone.prepare(dataset.Options{}), "d0", 0, 1)

	g := grant(t, nil)
	g.m.set(func() { g.m.answer.TicketsRequired = false })
	g.wait("the leader's word", func() bool { status, _ := g.ask(0, ""); return status == http.StatusOK })
	status, _ := g.ask(0, "x")
	assert.Equal(t, http.StatusUnauthorized, status, "a bad one is refused all the same")
	g.m.set(func() { g.m.answer.TicketKey = nil })
	status, _ = g.ask(0, "")
	assert.Equal(t, http.StatusOK, status)

	m := newMember(t) // it does not lead
	lost := start(t, func(c *Config) { c.Control = []string{m.url} },
		fill(t, "mem", map[string][]byte{"a.parquet": nodetest.Partition(t, 1, 200)}))
	j := lost.prepare(dataset.Options{})
	status, b, h := lost.get(lost.link(j, "d0", 0, 1))
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Contains(t, string(b), "has not reached the control plane")
	assert.NotEmpty(t, h.Get("Retry-After"))
}

// TestWhatAnOwnerMayHave checks that an owner past its bound of open splits is asked to come again, and that another
// owner is served.
func TestWhatAnOwnerMayHave(t *testing.T) {
	g := grant(t, func(c *Config) { c.Limits.OwnerSplits = 1 })
	of := func(owner string, split uint64) string {
		return g.show(func(t *apiv1.Ticket) {
			t.Owner, t.From, t.To, t.Lease, t.Job = owner, 8*split, 8*split+8, 100+split, owner
		})
	}
	status, code := g.ask(0, of("launcher/ads", 0))
	require.Equal(t, http.StatusOK, status, code)
	status, code = g.ask(8, of("launcher/ads", 1))
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Equal(t, "resource_exhausted", code)
	status, code = g.ask(16, of("launcher/news", 2))
	assert.Equal(t, http.StatusOK, status, code)
	for n := uint64(1); n < 8; n++ { // the split is used up
		status, code = g.ask(n, of("launcher/ads", 0))
		require.Equal(t, http.StatusOK, status, code)
	}
	g.wait("it is closed", func() bool { status, _ := g.ask(8, of("launcher/ads", 1)); return status == http.StatusOK })
}
