package remote

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
)

// piece checks a grant.
func (l *leases) piece(g *apiv1.Grant) (*piece, error) {
	e := l.epoch
	split, err := e.Plan.Split(int(g.Split))
	if err != nil {
		return nil, err
	}
	if g.Epoch != e.Number || g.From >= g.To || g.From < split.FirstNumber || g.To > split.FirstNumber+uint64(split.MiniBatches) {
		return nil, fmt.Errorf("mini-batches [%d, %d) of epoch %d are not of split %d, [%d, %d) of epoch %d", g.From, g.To, g.Epoch, g.Split,
			split.FirstNumber, split.FirstNumber+uint64(split.MiniBatches), e.Number)
	}
	p := &piece{l: l, lease: g.Lease, split: split, run: dataset.Range{From: g.From, To: g.To}, node: l.rank.node(g.Node), urls: g.Urls, drive: g.Drive}
	p.entitle(g.Ticket)
	p.ctx, p.cancel = context.WithCancelCause(l.ctx)
	return p, nil
}

// entitle takes a ticket for the lease; an older control plane sends none.
func (p *piece) entitle(ticket []byte) {
	if len(ticket) == 0 {
		return
	}
	text := base64.StdEncoding.EncodeToString(ticket)
	p.ticket.Store(&text)
}

// piece is one lease: a trainmgr.Piece.
type piece struct {
	l      *leases
	lease  uint64
	run    dataset.Range
	split  dataset.Split
	node   *node
	urls   []string
	drive  string
	ticket atomic.Pointer[string] // as the node is shown it; nil: none came with the lease
	ctx    context.Context        // ends when the lease is revoked, or with the delivery
	cancel context.CancelCauseFunc
	ended  bool // every mini-batch has come; guarded by l.mu
}

func (p *piece) Numbers() dataset.Range { return p.run }

func (p *piece) Drive() string { return p.node.name + "/" + p.drive }

func (p *piece) String() string {
	return fmt.Sprintf("node %s, drive %s: split %d, mini-batches [%d, %d)", p.node.name, p.drive, p.split.Position, p.run.From, p.run.To)
}

// Wrap implements trainmgr.Piece.
func (p *piece) Wrap(err error) error { return fmt.Errorf("%v: %w", p, err) }

// Open begins to fetch.
func (p *piece) Open(context.Context) (api.Stream, error) {
	if err := p.node.pause(p.ctx); err != nil {
		return nil, err
	}
	if err := p.node.reach(p.ctx, p.urls); err != nil {
		return nil, err
	}
	return openStream(p), nil
}

// End tells what becomes of the lease. A node that fails does not end the job.
func (p *piece) End(err error) error {
	l := p.l
	defer l.wake()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	switch cause := context.Cause(p.ctx); {
	case err == nil:
		p.ended = true
		delete(l.refused, p.split.Position)
		p.node.went(true)
		return nil
	case cause != nil: // revoked, or the delivery ends, or nothing new could come
		p.ended = errors.Is(cause, errWhole)
		return nil
	case errors.Is(err, ErrData), errors.Is(err, errRefused) && l.staysRefused(p.split.Position):
		if !errors.Is(err, ErrData) {
			err = fmt.Errorf("%w: %w", ErrData, err)
		}
		l.release(p.lease, "data: "+shortened(err.Error()))
		return err
	}
	p.node.went(false)
	l.rank.mu.Lock()
	l.rank.redone++
	l.rank.mu.Unlock()
	l.rank.client.o.Logger.Warn("a lease goes back", "job", l.rank.id, "lease", p.lease, "node", p.node.name, "drive", p.drive, "error", err)
	l.release(p.lease, "node: "+shortened(err.Error()))
	return nil
}

// shortened keeps a reason within what the control plane takes.
func shortened(s string) string { return s[:min(len(s), 2000)] }

// staysRefused reports whether a split has been refused for longer than the control plane needs to learn that a partition has moved. l.mu is held.
func (l *leases) staysRefused(split int) bool {
	since, ok := l.refused[split]
	if !ok {
		l.refused[split] = time.Now()
	}
	return ok && time.Since(since) > l.rank.o.refused
}
