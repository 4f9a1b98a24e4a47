package trainmgr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// Job is a submitted job.
type Job struct {
	source Source
	o      JobOptions
	digest dataset.Digest
	schema *tensor.Schema

	recorder *recorder // of the iteration that runs, which alone uses it

	mu        sync.Mutex
	epoch     *Epoch // the current one, its Progress kept up to date
	iterating bool
	closed    bool
	tally     tally
}

// tally is what the epochs so far add up to. Guarded by Job.mu.
type tally struct {
	rows    int64
	batches int64
	bytes   int64
	elapsed time.Duration
	epochs  []queueStats // of finished epochs
	current *queue       // of the epoch that runs
	begun   time.Time    // of the epoch that runs; zero when none does
	busiest int          // most drives at once
}

// JobOptions are what a Source's job needs to know beside its epochs.
type JobOptions struct {
	Digest     dataset.Digest
	Schema     *tensor.Schema
	Epochs     int // 0 means 1; for what the report foretells
	Order      dataset.Order
	QueueBytes int64        // bound of the input queue, 0 means DefaultQueueBytes
	Recording  Recording    // of moments in which the trainer starves
	Logger     *slog.Logger // nil: silent
}

// NewJob makes a job over a source, which the job closes. Launchers call Submit, or package remote's Attach.
func NewJob(ctx context.Context, source Source, o JobOptions) (*Job, error) {
	if o.QueueBytes == 0 {
		o.QueueBytes = DefaultQueueBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Epochs = max(o.Epochs, 1)
	switch {
	case o.QueueBytes < 0:
		return nil, fmt.Errorf("%w: a queue of %d bytes", ErrOptions, o.QueueBytes)
	case o.Order > dataset.Deterministic:
		return nil, fmt.Errorf("%w: order %d", ErrOptions, o.Order)
	}
	epoch, err := source.Epoch(ctx)
	if err != nil {
		return nil, err
	}
	return &Job{source: source, o: o, digest: o.Digest, schema: o.Schema, epoch: epoch}, nil
}

// Digest names the job: equal digests deliver equal mini-batches.
func (j *Job) Digest() dataset.Digest { return j.digest }

// Schema tells the mini-batches' tensors before the first one: number of dense features, keys, embeddings a key, types,
// fixed or list. It is not to be changed.
func (j *Job) Schema() *tensor.Schema { return j.schema }

// Plan returns the plan of the current epoch.
func (j *Job) Plan() *dataset.Plan {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.epoch.Plan
}

// Allocation tells T, P, the drives allocated, and the stall to expect, before the job starts.
func (j *Job) Allocation() allocation.Allocation { return j.source.Allocation() }

// Checkpoint returns the token of what has been acknowledged so far. A job submitted with it as Options.Resume never
// delivers an acknowledged mini-batch again, and delivers every other one.
func (j *Job) Checkpoint() dataset.Token {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.epoch.Progress.Token()
}

// Queue returns the state of the input queue.
func (j *Job) Queue() QueueStatus {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := QueueStatus{LimitBytes: j.o.QueueBytes}
	add := func(i int, q queueStats) {
		s.Stall += q.Stall
		if i > 0 {
			s.Stall += q.FirstWait // the trainer ran already
		}
	}
	for i, q := range j.tally.epochs {
		add(i, q)
	}
	if j.tally.current != nil {
		q := j.tally.current.statistics()
		s.MiniBatches, s.Bytes, s.Full = q.Depth, q.Bytes, q.Waiters > 0
		add(len(j.tally.epochs), q)
	}
	return s
}

// Acknowledge says that the trainer is done with a mini-batch of the current epoch. The iterator does so by itself when the next one is
// asked for; a launcher that stops in the middle, or keeps mini-batches longer, may say it earlier.
func (j *Job) Acknowledge(name tensor.Name) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if name.Job != [32]byte(j.digest) || name.Epoch != j.epoch.Number {
		return fmt.Errorf("acknowledge %v: %w", name, dataset.ErrOtherJob)
	}
	return j.acknowledge(name.Number)
}

// acknowledge counts a mini-batch and tells the source. j.mu is held.
func (j *Job) acknowledge(number uint64) error {
	if j.epoch.Progress.Acked(number) {
		return nil
	}
	if err := j.epoch.Progress.Ack(number); err != nil {
		return err
	}
	return j.source.Acknowledged(j.epoch.Number, number)
}

// MiniBatches iterates over the mini-batches that are not acknowledged yet, epoch after epoch. A mini-batch is
// acknowledged and released when the next one is asked for: who keeps it longer calls Retain and later Release. A loop
// that ends early leaves its last mini-batch unacknowledged: say Acknowledge before, if its step was made. An error
// ends the iteration; it is the first thing that went wrong, and nothing behind it is delivered. An iteration that has
// nothing to deliver, since everything was acknowledged before it began, is ErrNothingLeft; one of a rank that owns no
// mini-batch ends without an error, and says so in the log. One iteration at a time.
func (j *Job) MiniBatches(ctx context.Context) iter.Seq2[*tensor.MiniBatch, error] {
	return func(yield func(*tensor.MiniBatch, error) bool) {
		if err := j.beginIteration(); err != nil {
			yield(nil, err)
			return
		}
		defer j.endIteration()
		before, owns := j.given()
		for {
			more, err := j.iterateEpoch(ctx, yield)
			if err != nil {
				yield(nil, err)
				return
			}
			if !more {
				return
			}
			switch err := j.nextEpoch(ctx); {
			case errors.Is(err, io.EOF):
				if n, _ := j.given(); n > before {
					return
				}
				if !owns {
					j.o.Logger.Warn("there is no mini-batch: the data has none, or fewer than there are ranks", "digest", j.digest.String()[:12])
					return
				}
				yield(nil, fmt.Errorf("%w: every one was acknowledged before this iteration, up to %v; submit a job without that token to go over the data once more",
					ErrNothingLeft, j.Checkpoint()))
				return
			case err != nil:
				yield(nil, err)
				return
			}
		}
	}
}

// given returns how many mini-batches the trainer was given so far, and whether any of the current epoch is the
// trainer's, or was.
func (j *Job) given() (n int64, owns bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tally.batches, j.epoch.Plan.MiniBatches() > 0 && (j.epoch.Owned == nil || len(j.epoch.Owned) > 0 || j.epoch.Progress.Count() > 0)
}

func (j *Job) beginIteration() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closed:
		return ErrClosed
	case j.iterating:
		return fmt.Errorf("%w: the job is being iterated already", ErrOptions)
	}
	j.iterating = true
	j.recorder = j.o.Recording.record(j.o.Logger)
	return nil
}

func (j *Job) endIteration() {
	j.recorder.stop()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.iterating = false
}

// nextEpoch moves to the next epoch; io.EOF after the last.
func (j *Job) nextEpoch(ctx context.Context) error {
	epoch, err := j.source.Epoch(ctx)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.epoch = epoch
	return nil
}

// iterateEpoch delivers what the current epoch still owes. more is false when the consumer stopped.
func (j *Job) iterateEpoch(ctx context.Context, yield func(*tensor.MiniBatch, error) bool) (more bool, err error) {
	d, err := j.startDelivery(ctx)
	if err != nil {
		return false, err
	}
	defer d.stop()
	first := true // the wait for the first mini-batch is no starving
	for {
		got := func() {}
		if !first {
			got = j.recorder.wait()
		}
		mb, err := d.queue.get(ctx)
		got()
		if err == nil && ctx.Err() != nil { // what waits in the queue would hide it
			mb.Release()
			return false, context.Cause(ctx)
		}
		first = false
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		j.handedOver(mb)
		if !yield(mb, nil) {
			mb.Release()
			return false, nil
		}
		if err := j.delivered(mb); err != nil {
			return false, err
		}
	}
}

// handedOver counts a mini-batch that the trainer gets.
func (j *Job) handedOver(mb *tensor.MiniBatch) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tally.rows += int64(mb.Rows)
	j.tally.batches++
	j.tally.bytes += mb.Bytes()
}

// delivered acknowledges and releases a mini-batch that the trainer has had.
func (j *Job) delivered(mb *tensor.MiniBatch) error {
	j.mu.Lock()
	err := j.acknowledge(mb.Name.Number)
	j.mu.Unlock()
	mb.Release()
	return err
}

// Close gives back what the job held. No iteration may be running.
func (j *Job) Close() error {
	j.mu.Lock()
	if j.iterating {
		j.mu.Unlock()
		return fmt.Errorf("%w: close a job after its iteration has ended", ErrOptions)
	}
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	j.mu.Unlock()
	if err := j.source.Close(); err != nil {
		return fmt.Errorf("close job: %w", err)
	}
	return nil
}
