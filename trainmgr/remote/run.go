package remote

import (
	"crypto/rand"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// PartlyConsumedError says that another run has acknowledged mini-batches of the rank: they went into a model that this
// run does not have, and would never come to it. AttachOptions.Token goes on from a checkpoint, AttachOptions.Resume
// without them; a job of another name, or a job submitted after this one was cancelled, goes over all of the data.
type PartlyConsumedError struct {
	Job         string
	Rank        uint32
	Epoch       uint64 // that the rank is in, counted from 0
	Epochs      uint64 // of the job
	Delivered   uint64 // mini-batches of that epoch that the rank has acknowledged
	MiniBatches uint64 // of that epoch, of the rank
	Finished    bool   // every rank has acknowledged everything; the job waits for its trainers to say that they are through

	err error // as the control plane said it
}

func (e *PartlyConsumedError) Error() string { return e.err.Error() }

// Unwrap returns the error of the call.
func (e *PartlyConsumedError) Unwrap() error { return e.err }

// partlyConsumed returns what an error of Attach says of another run; nil if it says nothing of one.
func partlyConsumed(err error) *PartlyConsumedError {
	var ce *connect.Error
	if !errors.As(err, &ce) {
		return nil
	}
	for _, d := range ce.Details() {
		v, err := d.Value()
		if err != nil {
			continue
		}
		if p, ok := v.(*apiv1.PartlyConsumed); ok {
			return &PartlyConsumedError{
				Job: p.Job, Rank: p.Rank, Epoch: p.Epoch, Epochs: p.Epochs, Delivered: p.Delivered, MiniBatches: p.Minibatches, Finished: p.Finished, err: ce,
			}
		}
	}
	return nil
}

// madeUpRun names a run as no other is named.
func madeUpRun() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("client-%x", b)
}
