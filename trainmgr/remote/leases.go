package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/trainmgr"
)

const (
	// leaseWait is how long the leader may wait for something to grant: well below the second in which held leases must be named again.
	leaseWait = 500 * time.Millisecond
	// leaseRest is the pause between calls that ask for nothing, or were answered at once with nothing.
	leaseRest = 250 * time.Millisecond
	// stuckTime is how long the mini-batch that is due may be in nobody's hands before a later lease is given back for it.
	stuckTime = 2 * time.Second
	// refusedTime is how long nodes may refuse a split, because they do not hold its partition or it has changed, before the
	// data counts as at fault: beats tell the control plane of a partition that has moved within seconds.
	refusedTime = 5 * time.Second
)

var errRevoked = errors.New("the lease was revoked")

// leases are the pieces of one delivery: asked for, held, and given back.
type leases struct {
	rank     *rank
	epoch    *trainmgr.Epoch
	delivery trainmgr.Delivery
	ctx      context.Context // ends with the delivery
	stop     context.CancelFunc
	wg       sync.WaitGroup
	kick     chan struct{} // something changed that the leader should hear of now
	room     chan struct{} // another piece may be asked for
	due      chan struct{} // back has something

	mu      sync.Mutex
	held    map[uint64]*piece // by lease
	ready   []*piece          // granted, not started
	running int
	back    map[string][]uint64 // leases to give back, by reason
	adopt   bool
	refused map[int]time.Time // since when a split has been refused, by its place
	over    over              // leases that are no longer held
	dueAt   time.Time         // since when what is due is nobody's
	changed chan struct{}     // closed and renewed when ready or err change
	err     error
}

// Begin starts to ask for leases of the epoch.
func (r *rank) Begin(ctx context.Context, epoch *trainmgr.Epoch, delivery trainmgr.Delivery) (trainmgr.Pieces, error) {
	if err := r.acks.failed(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	l := &leases{rank: r, epoch: epoch, delivery: delivery, ctx: ctx, stop: stop, kick: make(chan struct{}, 1), room: make(chan struct{}, 1), due: make(chan struct{}, 1),
		held: map[uint64]*piece{}, back: map[string][]uint64{}, refused: map[int]time.Time{}, changed: make(chan struct{})}
	r.mu.Lock()
	r.leases = l
	r.mu.Unlock()
	l.wg.Go(l.ask)
	l.wg.Go(l.report)
	l.wg.Go(l.returns)
	l.wg.Go(l.endWhole)
	return l, nil
}

// wanted reports whether a mini-batch has still to come.
func (l *leases) wanted(number uint64) bool {
	pending, ok := l.delivery.Pending(number)
	return ok && pending == number
}

// Next waits for a piece that was granted.
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
		wait := l.changed
		l.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Close ends the asking and gives back what is held, as far as the control plane answers soon.
func (l *leases) Close() error {
	l.stop()
	l.wg.Wait()
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
	l.sweep()
	l.mu.Lock()
	for id := range l.held {
		l.release(id, "stop")
	}
	l.mu.Unlock()
	return errors.Join(err, l.giveBack(ctx))
}

// ask waits for leases, one call after another, as long as there is something to wait for.
func (l *leases) ask() {
	for l.ctx.Err() == nil {
		begin, wanted := time.Now(), false
		resp, err := l.rank.lease(l.ctx, func() *apiv1.LeaseRequest {
			req := l.request(true)
			wanted = req.Want > 0
			return req
		})
		if err == nil {
			err = l.take(resp)
		}
		if err != nil {
			l.fail(err)
			return
		}
		switch {
		case !wanted: // until there is room for more
			l.rest(l.room, leaseWait)
		case len(resp.Grants) == 0 && time.Since(begin) < leaseWait/2:
			l.rest(l.room, leaseRest) // the leader does not wait for us, as one does that has just begun
		}
	}
}

// report tells the leader what is held and how the queue stands: now and then, and at once when a drive is no longer needed for
// a lease.
func (l *leases) report() {
	for l.ctx.Err() == nil {
		resp, err := l.rank.lease(l.ctx, func() *apiv1.LeaseRequest { return l.request(false) })
		if err == nil {
			err = l.take(resp)
		}
		if err == nil {
			err = l.rank.acks.failed()
		}
		if err != nil {
			l.fail(err)
			return
		}
		l.rest(l.kick, leaseWait)
	}
}

// errWhole ends pieces when everything has come.
var errWhole = errors.New("every mini-batch has come")

// endWhole ends the pieces that can bring nothing new.
func (l *leases) endWhole() {
	select {
	case <-l.delivery.Whole():
	case <-l.ctx.Done():
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.held {
		p.cancel(errWhole)
	}
}

// returns gives leases back as soon as they are released, also while the leader is being asked for others.
func (l *leases) returns() {
	for {
		select {
		case <-l.due:
		case <-l.ctx.Done():
			return
		}
		if err := l.giveBack(l.ctx); err != nil {
			l.fail(err)
			return
		}
	}
}

// rest waits, but not when something changes.
func (l *leases) rest(change <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-change:
	case <-l.ctx.Done():
	}
}

func (l *leases) wake() {
	for _, c := range []chan struct{}{l.kick, l.room} {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// fail ends the delivery.
func (l *leases) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		l.change()
	}
}

// change tells who waits in Next. l.mu is held.
func (l *leases) change() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// request says what is held and, if so told, what is wanted.
func (l *leases) request(ask bool) *apiv1.LeaseRequest {
	status := l.delivery.Status()
	queue, left, due, ordered := status.Queue, status.Left, status.Due, status.Ordered
	l.mu.Lock()
	defer l.mu.Unlock()
	req := &apiv1.LeaseRequest{
		Epoch: l.epoch.Number, SaysDone: true,
		Report: &apiv1.RankReport{
			QueueBatches: float64(queue.MiniBatches), QueueBytes: queue.Bytes, QueueLimitBytes: queue.LimitBytes,
			StallSeconds: queue.Stall.Seconds(), TRowsPerSecond: l.rank.t, Blocked: queue.Full,
		},
	}
	if n := l.rank.o.Pieces - l.running - len(l.ready); ask && left > 0 && (n > 0 || ordered) {
		req.Want, req.WaitSeconds = int32(max(n, 1)), leaseWait.Seconds()
	}
	for id, p := range l.held {
		req.Held = append(req.Held, id)
		if p.ended {
			req.Fetched = append(req.Fetched, id)
		}
		if l.adopt {
			req.Adopt = append(req.Adopt, &apiv1.HeldLease{Lease: id, Epoch: req.Epoch, Split: uint32(p.split.Position), Node: p.node.name, Drive: p.drive, From: p.run.From, To: p.run.To})
		}
	}
	if ask && ordered && left > 0 {
		l.unstick(due)
	}
	return req
}

// unstick gives the last lease back when the mini-batch that is due is in nobody's hands: the drive that could make it may be busy with leases
// that wait for room behind it. l.mu is held.
func (l *leases) unstick(due uint64) {
	var last *piece
	for _, p := range l.held {
		if p.ended {
			continue
		}
		if p.run.From <= due && due < p.run.To {
			l.dueAt = time.Time{}
			return
		}
		if last == nil || p.run.From > last.run.From {
			last = p
		}
	}
	switch {
	case last == nil || !l.wanted(due):
		l.dueAt = time.Time{}
	case l.dueAt.IsZero():
		l.dueAt = time.Now()
	case time.Since(l.dueAt) > stuckTime:
		l.dueAt = time.Time{}
		last.cancel(errRevoked)
		l.release(last.lease, "stop")
	}
}

// take takes in what the leader answered.
func (l *leases) take(resp *apiv1.LeaseResponse) error {
	status := l.delivery.Status()
	l.rank.note(resp.Waiting, status.Left > 0 && status.Queue.MiniBatches == 0, time.Now())
	if resp.JobDone && status.Left > 0 {
		return fmt.Errorf("%w: %d mini-batches of epoch %d were not delivered", ErrEnded, status.Left, l.epoch.Number)
	}
	var pieces []*piece
	for _, g := range resp.Grants {
		p, err := l.piece(g)
		if err != nil {
			return fmt.Errorf("lease %d: %w", g.GetLease(), err)
		}
		pieces = append(pieces, p)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.adopt = resp.Adopt
	for _, id := range resp.Revoked {
		if p := l.held[id]; p != nil {
			l.rank.client.o.Logger.Info("lease revoked", "job", l.rank.id, "lease", id, "node", p.node.name, "drive", p.drive)
			p.cancel(errRevoked)
			l.drop(p)
		}
	}
	for _, t := range resp.Tickets {
		if p := l.held[t.GetLease()]; p != nil {
			p.entitle(t.GetTicket())
		}
	}
	for _, p := range pieces {
		if l.held[p.lease] != nil || l.over.has(p.lease) {
			p.cancel(nil)
			continue // the leader says a grant until it has heard that it came
		}
		l.held[p.lease] = p
		l.ready = append(l.ready, p)
		l.rank.client.o.Logger.Debug("lease", "job", l.rank.id, "lease", p.lease, "from", p.run.From, "to", p.run.To, "node", p.node.name, "drive", p.drive)
	}
	if len(pieces) > 0 {
		l.change()
	}
	if l.adopt {
		l.wake()
	}
	return nil
}

// drop forgets a lease. l.mu is held.
func (l *leases) drop(p *piece) {
	delete(l.held, p.lease)
	l.over.add(p.lease)
	for i, q := range l.ready {
		if q == p {
			l.ready = append(l.ready[:i], l.ready[i+1:]...)
			break
		}
	}
}

// sweep forgets leases whose every mini-batch the ledger knows to be delivered.
func (l *leases) sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.held {
		if p.ended && l.rank.known(p.run) {
			p.cancel(nil)
			l.drop(p)
		}
	}
}

// release notes a lease that is to be given back. l.mu is held.
func (l *leases) release(id uint64, reason string) {
	if p := l.held[id]; p != nil {
		l.drop(p)
		l.back[reason] = append(l.back[reason], id)
		select {
		case l.due <- struct{}{}:
		default:
		}
	}
}

// giveBack sends what release noted.
func (l *leases) giveBack(ctx context.Context) error {
	r := l.rank
	for {
		var req *apiv1.ReleaseRequest
		l.mu.Lock()
		for reason, ids := range l.back {
			req = &apiv1.ReleaseRequest{Leases: ids, Reason: reason}
			delete(l.back, reason)
			break
		}
		l.mu.Unlock()
		if req == nil {
			return nil
		}
		r.mu.Lock()
		req.Id, req.Session = r.id, r.session
		r.mu.Unlock()
		_, err := call(ctx, r.client, callTime, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.ReleaseResponse, error) {
			return m.Release(ctx, req)
		})
		if err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.back[req.Reason] = append(l.back[req.Reason], req.Leases...)
			return err
		}
	}
}
