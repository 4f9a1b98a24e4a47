package remote

import (
	"crypto/rand"
	"fmt"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// PartlyConsumedError says that another run has acknowledged mini-batches of the rank: they went into a model that this
// run does not have, and this run would never get them. With AttachOptions.Token the rank goes on from a checkpoint,
// with AttachOptions.Resume it goes on without them. A job of another name goes over all of the data, and so does a job
// that is submitted after this one was cancelled.
type PartlyConsumedError struct {
	Job         string
	Rank        uint32
	Epoch       uint64 // The rank is in this epoch, counted from 0.
	Epochs      uint64 // Epochs is how many the job has.
	Delivered   uint64 // mini-batches of that epoch that the rank has acknowledged
	MiniBatches uint64 // MiniBatches is how many the rank has in that epoch.
	Finished    bool   // every rank has acknowledged every mini-batch, and not every rank has closed the job

	err error // err is that of the call.
}

// Error implements error.
func (e *PartlyConsumedError) Error() string { return e.err.Error() }

// Unwrap returns the error of the call.
func (e *PartlyConsumedError) Unwrap() error { return e.err }

// partlyConsumed returns the other run that an error of Attach describes, or nil if the error names no other run.
func partlyConsumed(err error) *PartlyConsumedError {
	p, ok := detailOf[*apiv1.PartlyConsumed](err)
	if !ok {
		return nil
	}
	return &PartlyConsumedError{
		Job: p.Job, Rank: p.Rank, Epoch: p.Epoch, Epochs: p.Epochs,
		Delivered: p.Delivered, MiniBatches: p.Minibatches, Finished: p.Finished, err: err,
	}
}

// newRunName makes a random name of a run.
func newRunName() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	return fmt.Sprintf("client-%x", random)
}
