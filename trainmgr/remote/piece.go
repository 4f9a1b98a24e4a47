package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
)

// piece is one lease. It implements trainmgr.Piece.
type piece struct {
	leases      *leases
	lease       uint64 // the leader's number of the lease
	numbers     dataset.Range
	split       dataset.Split
	node        *node
	urls        []string // where the node is reached
	drive       string
	own         bool                   // the worker serves this rank alone
	withoutData bool                   // the leader decides whether the worker's word that data are bad ends the job
	ticket      atomic.Pointer[string] // in base64, as the node reads it; nil: none came with the lease
	ctx         context.Context        // ends when the lease is revoked, or with the delivery
	cancel      context.CancelCauseFunc
	ended       bool // every mini-batch has come; guarded by leases.mu
}

// newPiece checks a grant and makes a piece of it.
func (l *leases) newPiece(grant *apiv1.Grant) (*piece, error) {
	split, err := l.epoch.Plan.Split(int(grant.Split))
	if err != nil {
		return nil, err
	}
	end := split.FirstNumber + uint64(split.MiniBatches)
	if grant.Epoch != l.epoch.Number || grant.From >= grant.To || grant.From < split.FirstNumber || grant.To > end {
		return nil, fmt.Errorf("mini-batches [%d, %d) of epoch %d are not of split %d, [%d, %d) of epoch %d",
			grant.From, grant.To, grant.Epoch, grant.Split, split.FirstNumber, end, l.epoch.Number)
	}
	p := &piece{
		leases: l, lease: grant.Lease, split: split, numbers: dataset.Range{From: grant.From, To: grant.To},
		node: l.rank.node(grant.Node), urls: grant.Urls, drive: grant.Drive,
		withoutData: grant.Reach == apiv1.ReachAny, own: grant.Own,
	}
	p.setTicket(grant.Ticket)
	p.ctx, p.cancel = context.WithCancelCause(l.ctx)
	return p, nil
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
	return fmt.Sprintf("node %s, drive %s: split %d, mini-batches [%d, %d)",
		p.node.name, p.drive, p.split.Position, p.numbers.From, p.numbers.To)
}

// Wrap implements trainmgr.Piece.
func (p *piece) Wrap(err error) error { return fmt.Errorf("%v: %w", p, err) }

// Open implements trainmgr.Piece. It begins to fetch.
func (p *piece) Open(context.Context) (api.Stream, error) {
	if err := p.node.awaitPause(p.ctx); err != nil {
		return nil, err
	}
	if err := p.node.setAddresses(p.ctx, p.urls); err != nil {
		return nil, err
	}
	return openStream(p), nil
}

// End implements trainmgr.Piece. A node that fails does not end the job: the rank gives the lease back.
func (p *piece) End(err error) error {
	l := p.leases
	defer l.wakeLoops()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	cause := context.Cause(p.ctx)
	switch {
	case err == nil:
		p.ended = true
		delete(l.refusedSince, p.split.Position)
		p.node.noteResult(true)
		return nil
	case cause != nil: // the lease was revoked, the delivery ended, or every mini-batch has come
		p.ended = errors.Is(cause, errNothingMissing)
		return nil
	case errors.Is(err, ErrData), errors.Is(err, errRefused) && l.staysRefused(p.split.Position):
		if !errors.Is(err, ErrData) {
			err = fmt.Errorf("%w: %w", ErrData, err)
		}
		l.release(p.lease, reasonData+shortened(err.Error()))
		if p.withoutData {
			p.noteFailure(err)
			return nil
		}
		return err
	}
	p.noteFailure(err)
	l.release(p.lease, reasonNode+shortened(err.Error()))
	return nil
}

// noteFailure notes that the piece's node failed. leases.mu is held.
func (p *piece) noteFailure(err error) {
	l := p.leases
	p.node.noteResult(false)
	l.rank.mu.Lock()
	l.rank.failedLeases++
	l.rank.mu.Unlock()
	l.rank.client.options.Logger.Warn("a lease goes back", "job", l.rank.id, "lease", p.lease, "node", p.node.name,
		"drive", p.drive,
		"error", err)
}

// maxReason is how many bytes of an error fit the reason that the control plane takes.
const maxReason = 2000

// shortened cuts an error's text to the length that the control plane accepts for a reason. A message's text must be
// UTF-8.
func shortened(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxReason)], "") }

// staysRefused reports whether nodes have refused a split for longer than the control plane needs to learn that a
// partition has moved. l.mu is held.
func (l *leases) staysRefused(position int) bool {
	since, ok := l.refusedSince[position]
	if !ok {
		l.refusedSince[position] = time.Now()
	}
	return ok && time.Since(since) > l.rank.options.refused
}
