package trainmgr

import (
	"context"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/allocation"
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

// Pieces hands out the pieces of one epoch. One goroutine at a time calls Next and Close.
type Pieces interface {
	// Next waits for a piece that is to start now. It returns io.EOF when no piece is left to start. Any other error
	// ends the job.
	Next(ctx context.Context) (Piece, error)
	// Close ends the handing out. The job calls it after the last piece has ended.
	Close() error
}

// Piece is consecutive fragments of one split that one drive makes: a split, or the rest of a split of which some
// fragments came already. The job takes each piece in a goroutine of its own.
type Piece interface {
	// Numbers returns the fragments' numbers.
	Numbers() dataset.Range
	// Drive names the drive that makes the fragments.
	Drive() string
	// Open begins the fragments. The stream yields in ascending order those that are pending in the Delivery; it may
	// yield others of the piece.
	Open(ctx context.Context) (api.Stream, error)
	// End is called when the piece has ended, with the error that ended it or nil. The error that End returns ends the
	// job. If End returns nil the job goes on, and another piece brings what this piece did not bring.
	End(err error) error
	// Wrap adds to an error the parts of its place that the error does not name: the drive, the split or the partition.
	Wrap(err error) error
	// String names the drive and the split, for errors.
	String() string
}

// Delivery is an epoch under way as its Source sees it: the mini-batches that have still to come, and the room in
// the input queue. The job implements it. Its methods may be called from any goroutine.
type Delivery interface {
	// Status returns how much has still to come, and the state of the input queue.
	Status() DeliveryStatus
	// Pending returns the least number, from or above, of a fragment that has still to come: the consumer owns its
	// mini-batch, which was not acknowledged, and the fragment was not put into the queue. ok is false if there is none.
	Pending(from uint64) (number uint64, ok bool)
	// Whole returns a channel that is closed once every mini-batch has come. A piece that still runs then can bring
	// nothing new.
	Whole() <-chan struct{}
	// Reserve waits until the fragment of a number, of about that many bytes, fits the input queue, and keeps room for
	// it. A source that fetches over a network reserves room first, so that the queue's bound includes fragments on their
	// way. The caller calls release once, when the fragment is in the queue or will not come.
	Reserve(ctx context.Context, number uint64, bytes int64) (release func(), err error)
}

// DeliveryStatus is the state of a delivery at one moment.
type DeliveryStatus struct {
	Left    uint64 // mini-batches that have still to come
	Ordered bool   // the trainer takes mini-batches in the plan's order
	Due     uint64 // the number of the mini-batch that the trainer waits for next, if Ordered
	Queue   QueueStatus
}
