package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/ticket"
	"github.com/millrace/millrace/trainmgr/control/guard"
	"github.com/millrace/millrace/trainmgr/control/ledger"
)

// A ticket outlives an absence of leaders, in which launchers go on with what they hold; it is issued anew long before
// it expires. One whose lease has come back is void before: nodes are told.
const (
	ticketTime  = 10 * time.Minute
	ticketRenew = 3 * time.Minute
)

// maxBack is how many leases that came back are kept for a node until it has heard of them.
const maxBack = 4096

// tickets are those that go with one answer.
type tickets struct {
	unsigned []unsigned
}

type unsigned struct {
	ticket *apiv1.Ticket
	into   *[]byte
}

// sign signs them, each into its place.
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

// issue puts the tickets on the sheet that go with an answer: those of its grants, and of leases that are held whose
// tickets get old, or whose tickets this leader has not issued. l.mu is held.
func (l *leader) issue(ctx context.Context, j *job, session ledger.Session, req *apiv1.LeaseRequest, resp *apiv1.LeaseResponse, sheet *tickets, now time.Time) {
	r := &j.ranks[session.Rank]
	if r.tickets == nil {
		r.tickets = map[uint64]time.Time{}
	}
	for _, g := range resp.Grants {
		if le, ok := l.ledger.Find(j.ID, session.Rank, g.Lease); ok {
			if t := l.ticket(ctx, j, session, le, now); t != nil {
				sheet.unsigned = append(sheet.unsigned, unsigned{t, &g.Ticket})
				r.tickets[g.Lease] = now
			}
		}
	}
	fetched := map[uint64]bool{}
	for _, id := range req.Fetched {
		fetched[id] = true
	}
	for _, id := range req.Held {
		if at, ok := r.tickets[id]; fetched[id] || ok && now.Sub(at) < ticketRenew {
			continue
		}
		le, ok := l.ledger.Find(j.ID, session.Rank, id)
		if !ok {
			continue
		}
		if t := l.ticket(ctx, j, session, le, now); t != nil {
			renewed := &apiv1.LeaseTicket{Lease: id}
			resp.Tickets = append(resp.Tickets, renewed)
			sheet.unsigned = append(sheet.unsigned, unsigned{t, &renewed.Ticket})
			r.tickets[id] = now
		}
	}
	if len(r.tickets) > 2*(len(req.Held)+len(resp.Grants))+64 {
		for id := range r.tickets {
			if !l.ledger.Leased(j.ID, session.Rank, id) {
				delete(r.tickets, id)
			}
		}
	}
}

// ticket is what a lease entitles the caller to; nil while its node has not been heard of. l.mu is held.
func (l *leader) ticket(ctx context.Context, j *job, session ledger.Session, le ledger.Lease, now time.Time) *apiv1.Ticket {
	g, node := j.generationOf(le.Epoch), le.Drive.Node
	if g == nil || !l.fleet.Alive(node) {
		return nil
	}
	t := &apiv1.Ticket{
		Node: node, Incarnation: l.fleet.Status(node).GetIncarnation(), Drive: le.Drive.Name, Digest: g.Digest[:], Epoch: le.Epoch, From: le.From, To: le.To,
		Lease: le.ID, Job: j.ID, Rank: session.Rank, SessionFence: session.Fence, SessionSeq: session.Seq,
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

// returns are the leases on a node's drives that came back unfinished, in the order in which they did.
type returns struct {
	last uint64 // of all there ever were
	list []returned
}

type returned struct {
	seq, lease uint64
	at         time.Time
}

// add notes a lease that came back.
func (b *returns) add(lease uint64, now time.Time) {
	b.last++
	b.list = append(b.list, returned{b.last, lease, now})
	if len(b.list) > maxBack {
		b.list = slices.Delete(b.list, 0, len(b.list)-maxBack)
	}
}

// after forgets what the node has heard of, and what no ticket is left of, and returns the rest, and what the node will
// have heard of with it.
func (b *returns) after(seen uint64, now time.Time) (leases []uint64, upTo uint64) {
	b.list = slices.DeleteFunc(b.list, func(r returned) bool { return r.seq <= seen || now.Sub(r.at) > ticketTime })
	for _, r := range b.list {
		leases = append(leases, r.lease)
	}
	return leases, b.last
}
