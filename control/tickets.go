package control

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/guard"
	"github.com/millrace/millrace/control/ledger"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/ticket"
)

// A ticket remains valid while there is no leader, so that launchers can go on with the leases that they hold. The
// leader issues a ticket again long before it expires. The ticket of a lease that has come back is void at once: the
// leader informs the nodes.
const (
	ticketTime  = 10 * time.Minute
	ticketRenew = 3 * time.Minute
)

// tickets are the tickets of one answer.
type tickets struct {
	unsigned []unsigned
}

type unsigned struct {
	ticket *apiv1.Ticket
	into   *[]byte
}

// sign signs the tickets, each into its place in the answer.
func (s *tickets) sign(by *ticket.Signer) error {
	for _, u := range s.unsigned {
		b, err := by.Sign(u.ticket)
		if err != nil {
			return fmt.Errorf("lease %d: %w", u.ticket.Lease, err)
		}
		*u.into = b
	}
	return nil
}

// issueTicketsLocked puts the tickets into the answer of a Lease call: the tickets of the answer's grants, and the
// tickets of held leases if they are about to expire or this leader has not issued them.
func (c *leaseCall) issueTicketsLocked(resp *apiv1.LeaseResponse, now time.Time) {
	issued := &c.job.launchers[c.session.Rank].ticketsIssued
	if *issued == nil {
		*issued = map[uint64]time.Time{}
	}
	for _, g := range resp.Grants {
		c.issueTicketLocked(g.Lease, func() *[]byte { return &g.Ticket }, now)
	}
	fetched := make(map[uint64]bool, len(c.req.Fetched))
	for _, id := range c.req.Fetched {
		fetched[id] = true
	}
	for _, id := range c.req.Held {
		at, ok := (*issued)[id]
		if fetched[id] || ok && now.Sub(at) < ticketRenew {
			continue
		}
		c.issueTicketLocked(id, func() *[]byte {
			renewed := &apiv1.LeaseTicket{Lease: id}
			resp.Tickets = append(resp.Tickets, renewed)
			return &renewed.Ticket
		}, now)
	}
	if len(*issued) > 2*(len(c.req.Held)+len(resp.Grants))+64 {
		maps.DeleteFunc(*issued, func(lease uint64, _ time.Time) bool {
			return !c.l.mu.machine.Ledger.Leased(c.job.ID, c.session.Rank, lease)
		})
	}
}

// issueTicketLocked adds the ticket of a lease to the tickets to sign; place returns its place in the answer. There is
// no ticket for a lease that is over, or whose node has not reported to this leader.
func (c *leaseCall) issueTicketLocked(lease uint64, place func() *[]byte, now time.Time) {
	le, ok := c.l.mu.machine.Ledger.Find(c.job.ID, c.session.Rank, lease)
	if !ok {
		return
	}
	if t := newTicket(c.ctx, c.l.mu.fleet, c.job, c.session, le, now); t != nil {
		c.tickets.unsigned = append(c.tickets.unsigned, unsigned{t, place()})
		c.job.launchers[c.session.Rank].ticketsIssued[lease] = now
	}
}

// newTicket returns the unsigned ticket of a lease, or nil while the lease's node has not reported to this leader.
func newTicket(
	ctx context.Context, f *fleet.Fleet, j *job, session ledger.Session, le ledger.Lease, now time.Time,
) *apiv1.Ticket {
	g, node := j.editionOf(le.Epoch), le.Drive.Node
	if g == nil || !f.Alive(node) {
		return nil
	}
	t := &apiv1.Ticket{
		Node: node, Incarnation: f.Status(node).GetIncarnation(), Drive: le.Drive.Name, Digest: g.Digest[:],
		Epoch: le.Epoch, From: le.From, To: le.To,
		Lease: le.ID, Job: j.ID, Rank: session.Rank, SessionFence: session.Fence, SessionSeq: session.Generation,
		Owner: "job/" + j.ID, ExpiresSeconds: seconds(now.Add(ticketTime)),
	}
	if j.Owner != "" {
		t.Owner = string(identity.Launcher) + "/" + j.Owner
	}
	if id := guard.Peer(ctx); id != (identity.Identity{}) {
		t.Holder = id.String()
	}
	return t
}
