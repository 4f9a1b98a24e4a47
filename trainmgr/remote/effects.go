package remote

import (
	"context"
	"errors"
	"sync"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/remote/protocol"
)

// calls is the calls of something that ends: a rank, a delivery, or the way to the next epoch.
type calls struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func newCalls(ctx context.Context) *calls {
	c := &calls{}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// end ends the calls under way. No call begins any more.
func (c *calls) end() {
	c.cancel()
	c.wg.Wait()
}

// tell reports an event to the rank's machine, and begins what follows.
func (r *rank) tell(event func(m *protocol.Machine, now time.Time)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	event(r.machine, now)
	for _, effect := range r.machine.Ready() {
		r.carryOut(effect)
	}
	if next := r.machine.Deadline(); !next.Equal(r.nextTick) {
		if r.nextTick = next; next.IsZero() {
			r.timer.Stop()
		} else {
			r.timer.Reset(next.Sub(now))
		}
	}
}

// tick lets the machine's time pass.
func (r *rank) tick() {
	r.tell(func(m *protocol.Machine, now time.Time) {
		r.nextTick = time.Time{} // the timer has fired
		m.Tick(now)
	})
}

// await waits until the machine has reached a state.
func (r *rank) await(ctx context.Context, reached func(m *protocol.Machine) bool) error {
	for {
		r.mu.Lock()
		if reached(r.machine) {
			r.mu.Unlock()
			return nil
		}
		changed := r.changed.Changed()
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// carryOut carries out an effect of the machine. It does not wait. r.mu is held.
func (r *rank) carryOut(effect protocol.Effect) {
	l, logger := r.leases, r.client.options.Logger
	switch e := effect.(type) {
	case protocol.Wake:
		r.changed.Broadcast()
	case protocol.CallLease:
		under := r.turning
		if e.Purpose != protocol.AskEpoch {
			under = l.lending
		}
		under.wg.Go(func() { r.callLease(under.ctx, l, e.Purpose) })
	case protocol.SendAcknowledgements:
		r.lasting.wg.Go(func() { r.sendAcknowledgements(r.lasting.ctx, e) })
	case protocol.Release:
		under := r.lasting
		if l != nil {
			under = l.returning
		}
		under.wg.Go(func() { r.release(under.ctx, e) })
	case protocol.Attach:
		under := r.turning
		under.wg.Go(func() { r.attachAgain(under.ctx) })
	case protocol.Granted:
		l.pieces[e.Lease] = newPiece(l, e.Grant)
		logger.Debug("lease", "job", r.id, "lease", e.Lease, "from", e.From, "to", e.To, "node", e.Node, "drive", e.Drive)
	case protocol.CancelPiece:
		l.cancelPiece(e)
	case protocol.RenewTicket:
		if p := l.pieces[e.Lease]; p != nil {
			p.setTicket(e.Ticket)
		}
	case protocol.AcknowledgeAgain:
		logger.Info("acknowledge again", "job", r.id, "rank", r.options.Rank, "epoch", e.Epoch, "runs", e.Runs)
	case protocol.TrainerWaits:
		logger.Warn("the trainer waits for mini-batches", "job", r.id, "rank", r.options.Rank, "waiting", e.For,
			"for", e.Long.Round(time.Second).String())
	}
}

// callLease makes one lease call. It makes a new request for every attempt. l is nil in a call for the next epoch.
func (r *rank) callLease(ctx context.Context, l *leases, purpose protocol.Purpose) {
	resp, err := call(ctx, r.client, callTime, func(ctx context.Context, m controlClient) (*apiv1.LeaseResponse, error) {
		return m.Lease(ctx, r.leaseRequest(l, purpose))
	})
	progress := l.progress()
	r.tell(func(m *protocol.Machine, now time.Time) {
		if err != nil {
			m.LeaseFailed(purpose, err, now)
		} else {
			m.LeaseAnswered(purpose, leaseAnswer(resp), progress, now)
		}
	})
}

// leaseRequest returns what an attempt of a lease call says now.
func (r *rank) leaseRequest(l *leases, purpose protocol.Purpose) *apiv1.LeaseRequest {
	progress := l.progress()
	var q protocol.LeaseRequest
	r.tell(func(m *protocol.Machine, now time.Time) { q = m.LeaseRequest(purpose, progress, now) })
	req := wireRequest(r.id, q)
	if l != nil {
		req.Report = l.report()
	}
	return req
}

// sendAcknowledgements makes one call that acknowledges mini-batches.
func (r *rank) sendAcknowledgements(ctx context.Context, e protocol.SendAcknowledgements) {
	resp, err := invoke(ctx, r.client, callTime, controlClient.Acknowledge, &apiv1.AcknowledgeRequest{
		Id: r.id, Session: e.Session, Epoch: e.Epoch, Numbers: wireRanges(e.Numbers),
	})
	r.tell(func(m *protocol.Machine, now time.Time) {
		if err != nil {
			m.AcknowledgeFailed(err, now)
		} else {
			m.Acknowledged(resp.Fence, now)
		}
	})
}

// release makes one call that gives leases back.
func (r *rank) release(ctx context.Context, e protocol.Release) {
	_, err := invoke(ctx, r.client, callTime, controlClient.Release, &apiv1.ReleaseRequest{
		Id: r.id, Session: e.Session, Leases: e.Leases, Reason: e.Reason,
	})
	r.tell(func(m *protocol.Machine, now time.Time) {
		if err != nil {
			m.ReleaseFailed(err, now)
		} else {
			m.Released(now)
		}
	})
}

// attachAgain attaches for the next epoch.
func (r *rank) attachAgain(ctx context.Context) {
	resp, err := r.attach(ctx, r.id, nil, false)
	var epoch *attachedEpoch
	if err == nil {
		epoch, err = r.epochOf(resp)
	}
	r.tell(func(m *protocol.Machine, now time.Time) {
		if err != nil {
			m.AttachFailed(err, now)
			return
		}
		r.epoch = epoch.Epoch
		m.Attached(epoch.attachment(resp.Session), now)
	})
}

// flush waits until every acknowledgement so far is durable.
func (r *rank) flush(ctx context.Context) (err error) {
	var ticket uint64
	r.tell(func(m *protocol.Machine, now time.Time) { ticket = m.Flush(now) })
	ended := r.await(ctx, func(m *protocol.Machine) (durable bool) {
		durable, err = m.Flushed(ticket)
		return durable || err != nil
	})
	return errors.Join(ended, err)
}
