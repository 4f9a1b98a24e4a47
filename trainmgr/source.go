package trainmgr

import (
	"context"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// Source is where a job's work comes from: the drives of a storage side ([Submit]), or what a control plane leases out
// (package trainmgr/remote). What both share is the Job's: workers, the input queue, the order, what comes twice, the token,
// the report.
type Source interface {
	// Epoch returns the epoch to deliver: asked for when the job is made, and again whenever everything of the one before
	// has been acknowledged. io.EOF after the last.
	Epoch(ctx context.Context) (*Epoch, error)
	// Begin starts to hand out what an epoch still owes. It is called once an iteration and epoch.
	Begin(ctx context.Context, d *Delivery) (Pieces, error)
	// Acknowledged hears of each mini-batch that the trainer is done with, once. It does not wait.
	Acknowledged(epoch, number uint64) error
	// Allocation tells how many drives the job runs, and why.
	Allocation() allocation.Allocation
	// Report tells what the drives did so far, and what else is worth saying.
	Report(ctx context.Context) (drives []api.DriveReport, notes []string, err error)
	// Close gives everything back. No iteration runs.
	Close() error
}

// Epoch is one epoch of a job, as one consumer sees it.
type Epoch struct {
	Number uint64
	Plan   *dataset.Plan // of the whole epoch
	// Owned are the numbers that this consumer gets, ascending, neither empty nor touching; nil means all.
	Owned []dataset.Run
	// Progress is what was acknowledged before. It is the Job's from then on.
	Progress *dataset.Progress
}

// Pieces hands out one epoch's pieces. Next and Close are called from one goroutine at a time.
type Pieces interface {
	// Next waits for a piece that is to start now. io.EOF says that nothing is left to start. An error ends the job.
	Next(ctx context.Context) (Piece, error)
	// Close ends the handing out, after the last piece has ended.
	Close() error
}

// Piece is consecutive mini-batches of one split on one drive: the unit of work.
type Piece interface {
	// Numbers are the mini-batches' [From, To).
	Numbers() dataset.Run
	// Drive names who makes them.
	Drive() string
	// Open begins them. The stream yields those that Delivery.Wanted, or more of the piece, ascending.
	Open(ctx context.Context) (api.Stream, error)
	// End says how it went. The error that it returns ends the job; nil means that the job goes on, and that what the piece did not bring comes
	// again with another one.
	End(err error) error
	// String names drive and split, for errors.
	String() string
}

// QueueStatus is the state of a job's input queue.
type QueueStatus struct {
	MiniBatches int
	Bytes       int64
	LimitBytes  int64
	Full        bool          // somebody waits for room in it
	Stall       time.Duration // the trainer waited, after its first mini-batch
}

// pending returns the epoch's numbers that need not come: those that were acknowledged, and those that are not
// owned. It is a copy.
func (e *Epoch) pending() (*dataset.Progress, error) {
	total := e.Plan.MiniBatches()
	token := e.Progress.Token()
	var out []dataset.Run
	if token.Mark > 0 {
		out = append(out, dataset.Run{To: token.Mark})
	}
	out = append(out, token.Runs...)
	if e.Owned != nil {
		at := uint64(0)
		var gaps []dataset.Run
		for _, r := range e.Owned {
			gaps = append(gaps, dataset.Run{From: at, To: r.From})
			at = r.To
		}
		out = join(out, append(gaps, dataset.Run{From: at, To: total}))
	}
	t := dataset.Token{Job: token.Job, Epoch: token.Epoch}
	for _, r := range join(out, nil) {
		if r.From == 0 {
			t.Mark = r.To
		} else {
			t.Runs = append(t.Runs, r)
		}
	}
	return dataset.Resume(t, token.Job, total)
}

// join returns the runs that cover what a or b cover; both ascend, empty runs are left out.
func join(a, b []dataset.Run) []dataset.Run {
	var out []dataset.Run
	for len(a) > 0 || len(b) > 0 {
		var r dataset.Run
		if len(b) == 0 || (len(a) > 0 && a[0].From <= b[0].From) {
			r, a = a[0], a[1:]
		} else {
			r, b = b[0], b[1:]
		}
		switch n := len(out); {
		case r.From >= r.To:
		case n > 0 && r.From <= out[n-1].To:
			out[n-1].To = max(out[n-1].To, r.To)
		default:
			out = append(out, r)
		}
	}
	return out
}
