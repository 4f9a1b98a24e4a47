package remote

import (
	"context"
	"errors"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/remote/protocol"
)

var errRevoked = errors.New("the lease was revoked")

// errNothingMissing ends pieces when every mini-batch has come.
var errNothingMissing = errors.New("every mini-batch has come")

// leases carries out what the rank's machine decides about the leases of one delivery. It is the delivery's
// trainmgr.Pieces: each lease is a piece.
type leases struct {
	rank      *rank
	epoch     *trainmgr.Epoch
	delivery  trainmgr.Delivery
	lending   *calls            // lease calls; they end with the delivery
	returning *calls            // calls that give leases back; they end when Close does not wait any longer
	pieces    map[uint64]*piece // by lease: granted, and not ended; guarded by rank.mu
}

// Begin implements trainmgr.Source. It starts to ask for leases of the epoch.
func (r *rank) Begin(ctx context.Context, epoch *trainmgr.Epoch, delivery trainmgr.Delivery) (trainmgr.Pieces, error) {
	l := &leases{
		rank: r, epoch: epoch, delivery: delivery, lending: newCalls(ctx), returning: newCalls(context.WithoutCancel(ctx)),
		pieces: map[uint64]*piece{},
	}
	var err error
	r.tell(func(m *protocol.Machine, now time.Time) {
		r.leases = l
		if err = m.BeginDelivery(now); err != nil {
			r.leases = nil
		}
	})
	if err != nil {
		l.lending.cancel()
		l.returning.cancel()
		return nil, err
	}
	l.lending.wg.Go(l.awaitWhole)
	return l, nil
}

// awaitWhole tells the machine once every mini-batch has come.
func (l *leases) awaitWhole() {
	select {
	case <-l.delivery.Whole():
		l.rank.tell(func(m *protocol.Machine, _ time.Time) { m.EveryBatchCame() })
	case <-l.lending.ctx.Done():
	}
}

// Next implements trainmgr.Pieces. It waits for a granted lease.
func (l *leases) Next(ctx context.Context) (trainmgr.Piece, error) {
	var (
		p      *piece
		failed error
	)
	ended := l.rank.await(ctx, func(m *protocol.Machine) bool {
		lease, ok, err := m.StartPiece()
		p, failed = l.pieces[lease], err
		return ok || err != nil
	})
	if err := errors.Join(ended, failed); err != nil {
		return nil, err
	}
	return p, nil
}

// Close implements trainmgr.Pieces. It gives back every lease that the rank holds, if the control plane answers within
// seconds.
func (l *leases) Close() error {
	r := l.rank
	r.tell(func(m *protocol.Machine, now time.Time) { m.EndDelivery(now) })
	l.lending.end()
	var err error
	_ = r.await(context.Background(), func(m *protocol.Machine) (ended bool) { // at the machine's deadline at the latest
		if ended, err = m.DeliveryEnded(); ended {
			r.leases = nil
		}
		return ended
	})
	l.returning.end()
	return err
}

// progress returns how far the delivery is. The zero Progress is that of no delivery.
func (l *leases) progress() (p protocol.Progress) {
	if l == nil {
		return p
	}
	status := l.delivery.Status()
	p = protocol.Progress{Left: status.Left, Queued: status.Queue.MiniBatches, Ordered: status.Ordered}
	if p.Ordered {
		due := l.epoch.Plan.FragmentsOf(dataset.Range{From: status.Due, To: status.Due + 1})
		p.Due, p.DueLate = l.delivery.Pending(due.From)
		p.DueLate = p.DueLate && p.Due < due.To
	}
	return p
}

// wanted reports whether a fragment has still to come.
func (l *leases) wanted(number uint64) bool {
	pending, ok := l.delivery.Pending(number)
	return ok && pending == number
}

// report tells the control plane how the rank's input queue stands, and what the workers have made.
func (l *leases) report() *apiv1.RankReport {
	queue := l.delivery.Status().Queue
	report := &apiv1.RankReport{
		QueueBatches: float64(queue.MiniBatches), QueueBytes: queue.Bytes, QueueLimitBytes: queue.LimitBytes,
		StallSeconds: queue.Stall.Seconds(), TRowsPerSecond: l.rank.rowsPerSecond, Blocked: queue.Full,
		Own: sideReport(l.rank.meter(true)), Others: sideReport(l.rank.meter(false)),
	}
	l.rank.profiler.Report(report)
	return report
}

// cancelPiece ends the piece of a lease. rank.mu is held.
func (l *leases) cancelPiece(e protocol.CancelPiece) {
	p := l.pieces[e.Lease]
	if p == nil {
		return
	}
	switch e.Why {
	case protocol.NothingMissing: // the lease is held until the acknowledgements are durable
		p.cancel(errNothingMissing)
		return
	case protocol.Delivered:
		p.cancel(nil)
	case protocol.Revoked:
		l.rank.client.options.Logger.Info("lease revoked", "job", l.rank.id, "lease", p.lease, "node", p.node.name,
			"drive", p.drive)
		p.cancel(errRevoked)
	case protocol.Stuck:
		p.cancel(errRevoked)
	}
	delete(l.pieces, e.Lease)
}
