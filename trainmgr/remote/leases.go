package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/trainmgr"
)

const (
	// leaseWait is how long the leader may wait for a lease that it can grant. It is well below the second in which the
	// rank must name the leases that it holds again.
	leaseWait = 500 * time.Millisecond
	// leaseRest is the pause after a call that asked for no lease, or that the leader answered at once without one.
	leaseRest = 250 * time.Millisecond
	// stuckTime is how long the rank may hold no lease for the mini-batch that is due, before it gives a later lease
	// back.
	stuckTime = 2 * time.Second
	// refusedTime is how long nodes may refuse a split, because they do not hold its partition or the partition has
	// changed, before the data counts as at fault. The nodes' heartbeats tell the control plane within seconds that a
	// partition has moved.
	refusedTime = 5 * time.Second
)

// Reasons for which a rank gives a lease back. The control plane reads the words before the colon.
const (
	reasonStop = "stop"
	reasonData = "data: "
	reasonNode = "node: "
	// Of a rank that gives all of its leases back.
	reasonDetach = "detach"
	reasonDone   = "done"
)

var errRevoked = errors.New("the lease was revoked")

// errNothingMissing ends pieces when every mini-batch has come.
var errNothingMissing = errors.New("every mini-batch has come")

// leases asks the control plane for the leases of one delivery, holds them and gives them back. It is the delivery's
// trainmgr.Pieces: each lease is a piece.
type leases struct {
	rank     *rank
	epoch    *trainmgr.Epoch
	delivery trainmgr.Delivery
	ctx      context.Context // ends with the delivery
	stop     context.CancelFunc
	loops    sync.WaitGroup

	reportNow chan struct{} // the leader should now hear which leases the rank holds
	askNow    chan struct{} // the rank may ask for another lease
	returnNow chan struct{} // toReturn is not empty

	mu           sync.Mutex
	held         map[uint64]*piece   // by lease
	ready        []*piece            // granted, not started
	running      int                 // pieces under way
	toReturn     map[string][]uint64 // leases to give back, by reason
	adopt        bool                // the leader is new and asks for a description of each lease that the rank holds
	refusedSince map[int]time.Time   // by the split's position in the plan: since when nodes have refused it
	ended        endedLeases
	stuckSince   time.Time      // since when the rank holds no lease for the mini-batch that is due; zero: it holds one
	changed      wait.Broadcast // It wakes Next when ready or err change.
	err          error          // ends the delivery
}

// Begin implements trainmgr.Source. It starts to ask for leases of the epoch.
func (r *rank) Begin(ctx context.Context, epoch *trainmgr.Epoch, delivery trainmgr.Delivery) (trainmgr.Pieces, error) {
	if err := r.acks.failed(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	l := &leases{
		rank: r, epoch: epoch, delivery: delivery, ctx: ctx, stop: stop,
		reportNow: make(chan struct{}, 1), askNow: make(chan struct{}, 1), returnNow: make(chan struct{}, 1),
		held: map[uint64]*piece{}, toReturn: map[string][]uint64{}, refusedSince: map[int]time.Time{},
	}
	r.mu.Lock()
	r.leases = l
	r.mu.Unlock()
	l.loops.Go(l.askLoop)
	l.loops.Go(l.reportLoop)
	l.loops.Go(l.returnLoop)
	l.loops.Go(l.cancelWhenWhole)
	return l, nil
}

// Next implements trainmgr.Pieces. It waits for a granted lease.
func (l *leases) Next(ctx context.Context) (trainmgr.Piece, error) {
	for {
		l.mu.Lock()
		if l.err != nil {
			defer l.mu.Unlock()
			return nil, l.err
		}
		if len(l.ready) > 0 {
			p := l.ready[0]
			l.ready = l.ready[1:]
			l.running++
			l.mu.Unlock()
			return p, nil
		}
		changed := l.changed.Changed()
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Close implements trainmgr.Pieces. It gives back every lease that the rank holds, if the control plane answers within
// closeTime.
func (l *leases) Close() error {
	l.stop()
	l.loops.Wait()
	r := l.rank
	r.mu.Lock()
	r.leases = nil
	r.mu.Unlock()
	l.mu.Lock()
	fenced := errors.Is(l.err, ErrFenced)
	l.mu.Unlock()
	if fenced {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := r.acks.flush(ctx)
	l.dropDelivered()
	l.mu.Lock()
	for lease := range l.held {
		l.release(lease, reasonStop)
	}
	l.mu.Unlock()
	return errors.Join(err, l.returnReleased(ctx))
}

// askLoop asks for leases, one call after another, and reports the leases that the rank holds.
func (l *leases) askLoop() {
	for l.ctx.Err() == nil {
		begin, wanted := time.Now(), false
		resp, err := l.rank.lease(l.ctx, func() *apiv1.LeaseRequest {
			req := l.request(true)
			wanted = req.Want > 0
			return req
		})
		if err == nil {
			err = l.handleResponse(resp)
		}
		if err != nil {
			l.fail(err)
			return
		}
		switch {
		case !wanted: // the rank holds as many leases as it may
			l.rest(l.askNow, leaseWait)
		case len(resp.Grants) == 0 && time.Since(begin) < leaseWait/2:
			l.rest(l.askNow, leaseRest) // a leader that was elected just now answers without waiting
		}
	}
}

// reportLoop tells the leader which leases the rank holds and how its queue stands: every leaseWait, and at once
// when reportNow is signalled.
func (l *leases) reportLoop() {
	for l.ctx.Err() == nil {
		resp, err := l.rank.lease(l.ctx, func() *apiv1.LeaseRequest { return l.request(false) })
		if err == nil {
			err = l.handleResponse(resp)
		}
		if err == nil {
			err = l.rank.acks.failed()
		}
		if err != nil {
			l.fail(err)
			return
		}
		l.rest(l.reportNow, leaseWait)
	}
}

// cancelWhenWhole ends every piece once every mini-batch has come.
func (l *leases) cancelWhenWhole() {
	select {
	case <-l.delivery.Whole():
	case <-l.ctx.Done():
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.held {
		p.cancel(errNothingMissing)
	}
}

// returnLoop gives leases back as soon as they are released, also while askLoop waits for others.
func (l *leases) returnLoop() {
	for {
		select {
		case <-l.returnNow:
		case <-l.ctx.Done():
			return
		}
		if err := l.returnReleased(l.ctx); err != nil {
			l.fail(err)
			return
		}
	}
}

// rest waits for at most d. A signal ends the wait.
func (l *leases) rest(signal <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-signal:
	case <-l.ctx.Done():
	}
}

// notify sends a signal, unless one is pending.
func notify(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// wakeLoops makes askLoop and reportLoop call the leader now.
func (l *leases) wakeLoops() {
	notify(l.reportNow)
	notify(l.askNow)
}

// fail ends the delivery with an error.
func (l *leases) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		l.noteChange()
	}
}

// noteChange wakes the caller of Next. l.mu is held.
func (l *leases) noteChange() {
	l.changed.Broadcast()
}

// wanted reports whether a mini-batch has still to come.
func (l *leases) wanted(number uint64) bool {
	pending, ok := l.delivery.Pending(number)
	return ok && pending == number
}

// request names the leases that the rank holds. If ask is true it also asks for leases, as far as the rank may hold
// more.
func (l *leases) request(ask bool) *apiv1.LeaseRequest {
	status := l.delivery.Status()
	l.mu.Lock()
	defer l.mu.Unlock()
	req := &apiv1.LeaseRequest{
		Epoch: l.epoch.Number, SaysDone: true,
		Report: &apiv1.RankReport{
			QueueBatches: float64(status.Queue.MiniBatches), QueueBytes: status.Queue.Bytes,
			QueueLimitBytes: status.Queue.LimitBytes, StallSeconds: status.Queue.Stall.Seconds(),
			TRowsPerSecond: l.rank.rowsPerSecond, Blocked: status.Queue.Full,
			Own: sideReport(l.rank.meter(true)), Others: sideReport(l.rank.meter(false)),
		},
	}
	l.rank.profiler.report(req.Report)
	room := l.rank.options.Pieces - l.running - len(l.ready)
	if ask && status.Left > 0 && (room > 0 || status.Ordered) {
		req.Want, req.WaitSeconds = int32(max(room, 1)), leaseWait.Seconds()
	}
	for lease, p := range l.held {
		req.Held = append(req.Held, lease)
		if p.ended {
			req.Fetched = append(req.Fetched, lease)
		}
		if l.adopt {
			req.Adopt = append(req.Adopt, &apiv1.HeldLease{
				Lease: lease, Epoch: req.Epoch, Split: uint32(p.split.Position), Node: p.node.name, Drive: p.drive,
				From: p.numbers.From, To: p.numbers.To,
			})
		}
	}
	if ask && status.Ordered && status.Left > 0 {
		l.releaseIfStuck(status.Due)
	}
	return req
}

// releaseIfStuck gives the last lease back if the rank has held no lease for the mini-batch that is due for stuckTime.
// The drive that could make that mini-batch may be busy with leases whose mini-batches wait for room behind it. l.mu is
// held.
func (l *leases) releaseIfStuck(due uint64) {
	var last *piece
	for _, p := range l.held {
		if p.ended {
			continue
		}
		if p.numbers.From <= due && due < p.numbers.To {
			l.stuckSince = time.Time{}
			return
		}
		if last == nil || p.numbers.From > last.numbers.From {
			last = p
		}
	}
	switch {
	case last == nil || !l.wanted(due):
		l.stuckSince = time.Time{}
	case l.stuckSince.IsZero():
		l.stuckSince = time.Now()
	case time.Since(l.stuckSince) > stuckTime:
		l.stuckSince = time.Time{}
		last.cancel(errRevoked)
		l.release(last.lease, reasonStop)
	}
}

// handleResponse takes the grants, revocations and tickets of the leader's answer.
func (l *leases) handleResponse(resp *apiv1.LeaseResponse) error {
	status := l.delivery.Status()
	l.rank.noteWaiting(resp.Waiting, status.Left > 0 && status.Queue.MiniBatches == 0, time.Now())
	if resp.JobDone && status.Left > 0 {
		return fmt.Errorf("%w: %d mini-batches of epoch %d were not delivered", ErrEnded, status.Left, l.epoch.Number)
	}
	var granted []*piece
	for _, grant := range resp.Grants {
		p, err := l.newPiece(grant)
		if err != nil {
			return fmt.Errorf("lease %d: %w", grant.GetLease(), err)
		}
		granted = append(granted, p)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.adopt = resp.Adopt
	for _, lease := range resp.Revoked {
		l.revoke(lease)
	}
	for _, t := range resp.Tickets {
		if p := l.held[t.GetLease()]; p != nil {
			p.setTicket(t.GetTicket())
		}
	}
	for _, p := range granted {
		l.hold(p)
	}
	if len(granted) > 0 {
		l.noteChange()
	}
	if l.adopt {
		l.wakeLoops()
	}
	return nil
}

// revoke ends a lease that the leader has taken back. l.mu is held.
func (l *leases) revoke(lease uint64) {
	p := l.held[lease]
	if p == nil {
		return
	}
	l.rank.client.options.Logger.Info("lease revoked", "job", l.rank.id, "lease", lease, "node", p.node.name,
		"drive", p.drive)
	p.cancel(errRevoked)
	l.drop(p)
}

// hold takes a granted lease. The leader repeats a grant until it has heard that the grant has come, so hold ignores a
// lease that the rank holds already or held before. l.mu is held.
func (l *leases) hold(p *piece) {
	if l.held[p.lease] != nil || l.ended.contains(p.lease) {
		p.cancel(nil)
		return
	}
	l.held[p.lease] = p
	l.ready = append(l.ready, p)
	l.rank.client.options.Logger.Debug("lease", "job", l.rank.id, "lease", p.lease, "from", p.numbers.From,
		"to", p.numbers.To,
		"node", p.node.name, "drive", p.drive)
}

// drop forgets a lease. l.mu is held.
func (l *leases) drop(p *piece) {
	delete(l.held, p.lease)
	l.ended.add(p.lease)
	if i := slices.Index(l.ready, p); i >= 0 {
		l.ready = slices.Delete(l.ready, i, i+1)
	}
}

// dropDelivered forgets the leases of which the ledger knows that every mini-batch was delivered.
func (l *leases) dropDelivered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.held {
		if p.ended && l.rank.isDurable(p.numbers) {
			p.cancel(nil)
			l.drop(p)
		}
	}
}

// release forgets a lease that the rank holds and has returnLoop give it back. l.mu is held.
func (l *leases) release(lease uint64, reason string) {
	if p := l.held[lease]; p != nil {
		l.drop(p)
		l.toReturn[reason] = append(l.toReturn[reason], lease)
		notify(l.returnNow)
	}
}

// returnReleased gives back every lease that was released.
func (l *leases) returnReleased(ctx context.Context) error {
	r := l.rank
	for {
		var req *apiv1.ReleaseRequest
		l.mu.Lock()
		for reason, released := range l.toReturn {
			req = &apiv1.ReleaseRequest{Leases: released, Reason: reason}
			delete(l.toReturn, reason)
			break
		}
		l.mu.Unlock()
		if req == nil {
			return nil
		}
		r.mu.Lock()
		req.Id, req.Session = r.id, r.session
		r.mu.Unlock()
		if _, err := invoke(ctx, r.client, callTime, controlClient.Release, req); err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.toReturn[req.Reason] = append(l.toReturn[req.Reason], req.Leases...)
			return err
		}
	}
}
