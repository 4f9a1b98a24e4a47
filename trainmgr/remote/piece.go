package remote

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/remote/protocol"
)

// piece is one lease. It implements trainmgr.Piece.
type piece struct {
	leases  *leases
	lease   uint64        // the leader's number of the lease
	numbers dataset.Range // numbers are those of fragments.
	split   int           // position in the plan
	node    *node
	urls    []string // where the node is reached
	drive   string
	own     bool                   // the worker serves this rank alone
	ticket  atomic.Pointer[string] // in base64, as the node reads it; nil: none came with the lease
	ctx     context.Context        // ends when the lease is revoked, or with the delivery
	cancel  context.CancelCauseFunc
}

// newPiece makes a piece of a grant. rank.mu is held.
func newPiece(l *leases, g protocol.Grant) *piece {
	p := &piece{
		leases: l, lease: g.Lease, numbers: dataset.Range{From: g.From, To: g.To}, split: g.Split,
		node: l.rank.node(g.Node), urls: g.URLs, drive: g.Drive, own: g.Own,
	}
	p.setTicket(g.Ticket)
	p.ctx, p.cancel = context.WithCancelCause(l.lending.ctx)
	return p
}

// setTicket takes the ticket that shows the node that the lease is the rank's. An older control plane sends none.
func (p *piece) setTicket(ticket []byte) {
	if len(ticket) == 0 {
		return
	}
	text := apiv1.EncodeTicket(ticket)
	p.ticket.Store(&text)
}

// Numbers implements trainmgr.Piece.
func (p *piece) Numbers() dataset.Range { return p.numbers }

// Drive implements trainmgr.Piece.
func (p *piece) Drive() string { return p.node.name + "/" + p.drive }

// String implements trainmgr.Piece.
func (p *piece) String() string {
	return fmt.Sprintf("node %s, drive %s: split %d, fragments [%d, %d)",
		p.node.name, p.drive, p.split, p.numbers.From, p.numbers.To)
}

// Wrap implements trainmgr.Piece.
func (p *piece) Wrap(err error) error { return fmt.Errorf("%v: %w", p, err) }

// Open implements trainmgr.Piece. It begins to fetch.
func (p *piece) Open(context.Context) (api.Stream, error) {
	r := p.leases.rank
	var pause time.Duration
	r.tell(func(m *protocol.Machine, now time.Time) { pause = m.NodePause(p.node.name, now) })
	if err := wait.Sleep(p.ctx, pause); err != nil {
		return nil, err
	}
	addresses, err := p.node.findAddresses(p.ctx, p.urls)
	if err != nil {
		return nil, err
	}
	if addresses != nil {
		r.tell(func(m *protocol.Machine, _ time.Time) { m.Reached(p.node.name, addresses) })
	}
	return openStream(p), nil
}

// End implements trainmgr.Piece.
func (p *piece) End(err error) error {
	r, why := p.leases.rank, ""
	if err != nil {
		why = err.Error()
	}
	var verdict protocol.Verdict
	r.tell(func(m *protocol.Machine, now time.Time) {
		verdict = m.PieceEnded(p.lease, p.outcome(err), why, now)
	})
	switch verdict {
	case protocol.GoesBack:
		r.client.options.Logger.Warn("a lease goes back", "job", r.id, "lease", p.lease, "node", p.node.name,
			"drive", p.drive, "error", err)
	case protocol.EndsJob:
		if !errors.Is(err, ErrData) {
			err = fmt.Errorf("%w: %w", ErrData, err)
		}
		return err
	}
	return nil
}

// outcome says how the piece has ended.
func (p *piece) outcome(err error) protocol.Outcome {
	cause := context.Cause(p.ctx)
	switch {
	case err == nil:
		return protocol.Complete
	case errors.Is(cause, errNothingMissing):
		return protocol.Unneeded
	case cause != nil:
		return protocol.Interrupted
	case errors.Is(err, ErrData):
		return protocol.DataFaulty
	case errors.Is(err, errRefused):
		return protocol.DataRefused
	}
	return protocol.NodeFailed
}
