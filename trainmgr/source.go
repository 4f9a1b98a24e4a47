package trainmgr

import (
	"context"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/trainmgr/allocation"
	"github.com/millrace/millrace/trainmgr/delivery"
)

// Source is where a job's mini-batches come from. Two packages implement it: this one over the drives of an api.Storage
// (see [Submit]), and trainmgr/remote over the leases of a control plane. The Job holds what both need: the input
// queue, the order, the mini-batches that came already, the token and the report. A source brings mini-batches in
// fragments, numbered as dataset.Plan numbers them, and the job joins them; what it acknowledges are mini-batches.
type Source interface {
	// Epoch returns the epoch to deliver. The job calls it once when it is made, and again whenever every mini-batch of
	// the epoch before has been acknowledged. It returns io.EOF after the last epoch.
	Epoch(ctx context.Context) (*Epoch, error)
	// Begin starts to hand out the mini-batches that an epoch still owes. The job calls it once for each iteration and
	// epoch.
	Begin(ctx context.Context, epoch *Epoch, delivery Delivery) (Pieces, error)
	// Acknowledged is called once for each mini-batch that the trainer is done with. It does not wait.
	Acknowledged(epoch, number uint64) error
	// Allocation returns how many drives the job runs at once, with the values that this follows from.
	Allocation() allocation.Allocation
	// Report returns the drives' work so far, and notes for the job's report.
	Report(ctx context.Context) (drives []api.DriveReport, notes []string, err error)
	// Close frees what the source holds. No iteration is under way when it is called.
	Close() error
}

// What a Source deals with are types of package delivery.
type (
	// Epoch is the epoch that a Source begins.
	Epoch = delivery.Epoch
	// Pieces hands out the pieces of an epoch.
	Pieces = delivery.Pieces
	// Piece is consecutive fragments of one split, which one drive makes.
	Piece = delivery.Piece
	// Delivery is an epoch under way: what has still to come, and the room in the input queue.
	Delivery = delivery.View
	// QueueStatus is the state of the input queue.
	QueueStatus = delivery.QueueStatus
)
