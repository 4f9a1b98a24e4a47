package delivery

import (
	"context"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
)

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
	// Open begins the fragments. The stream yields in ascending order those that are pending in the View; it may
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

// View is an epoch under way as its source sees it: the mini-batches that have still to come, and the room in
// the input queue. A Delivery implements it. Its methods may be called from any goroutine.
type View interface {
	// Status returns how much has still to come, and the state of the input queue.
	Status() Status
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

// Status is the state of a delivery at one moment.
type Status struct {
	Left    uint64 // mini-batches that have still to come
	Ordered bool   // the trainer takes mini-batches in the plan's order
	Due     uint64 // the number of the mini-batch that the trainer waits for next, if Ordered
	Queue   QueueStatus
}

// QueueStatus is the state of a job's input queue.
type QueueStatus struct {
	MiniBatches int
	Bytes       int64
	LimitBytes  int64
	Full        bool          // a mini-batch waits for room in the queue
	Stall       time.Duration // the trainer waited, after its first mini-batch
	TakenRows   uint64        // TakenRows counts the rows that the trainer has taken since the job began.
}
