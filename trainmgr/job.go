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
	"github.com/millrace/millrace/trainmgr/delivery"
	"github.com/millrace/millrace/trainmgr/inputqueue"
	"github.com/millrace/millrace/trainmgr/starvation"
)

// Job is a submitted job.
type Job struct {
	source  Source
	options JobOptions
	digest  dataset.Digest
	schema  *tensor.Schema

	memory   tensor.Memory        // Mini-batches that are joined lie in it.
	recorder *starvation.Recorder // The iteration under way alone uses it.

	mu        sync.Mutex // guards the fields below
	epoch     *Epoch     // the current epoch; the job keeps its Progress up to date
	iterating bool
	closed    bool
	tally     tally
}

// tally is the sum of what the job's epochs did. Job.mu guards it.
type tally struct {
	rows          int64
	batches       int64
	bytes         int64
	elapsed       time.Duration
	epochs        []inputqueue.Statistics // epochs has the statistics of epochs that have finished.
	current       *delivery.Delivery      // current is the epoch under way; it is nil when no iteration is.
	begun         time.Time               // when the epoch under way began; zero when no iteration is under way
	busiestDrives int                     // most drives at once, in epochs that have finished
	drives        map[string]driveTally
}

// driveTally is what the trainer got from one drive. A mini-batch of several drives' rows counts for the drive of its
// first row.
type driveTally struct{ rows, fragments, batches int64 }

// JobOptions are the settings of a job beside the epochs of its Source.
type JobOptions struct {
	Digest     dataset.Digest
	Schema     *tensor.Schema
	Epochs     int // 0 means 1; the report's expected stall is for all of them
	Order      dataset.Order
	QueueBytes int64            // bound of the input queue, 0 means DefaultQueueBytes
	Recording  Recording        // traces of moments in which the trainer starves
	Logger     *slog.Logger     // nil discards the log
	Now        func() time.Time // the clock of the report's times; nil: time.Now

	modelledClock bool // Options.modelledClock
}

// NewJob makes a job over a source. Job.Close closes the source. Launchers call Submit, or Attach of package remote.
func NewJob(ctx context.Context, source Source, o JobOptions) (*Job, error) {
	if o.QueueBytes == 0 {
		o.QueueBytes = DefaultQueueBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
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
	return &Job{source: source, options: o, digest: o.Digest, schema: o.Schema, epoch: epoch,
		tally: tally{drives: map[string]driveTally{}}}, nil
}

// Digest names the job: equal digests deliver equal mini-batches. A job that follows its data set has another digest
// for the epochs of partitions that came later: Digest returns that of the first ones, and mini-batches name theirs.
func (j *Job) Digest() dataset.Digest { return j.digest }

// Schema describes the mini-batches' tensors before the first mini-batch: how many dense features, which keys, how many
// embeddings each key has, which types, and whether a key's values are lists. The caller must not change it.
func (j *Job) Schema() *tensor.Schema { return j.schema }

// Plan returns the plan of the current epoch.
func (j *Job) Plan() *dataset.Plan {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.epoch.Plan
}

// Allocation returns T, P, the number of drives that run at once, and the stall to expect. It is known before the first
// mini-batch is made.
func (j *Job) Allocation() allocation.Allocation { return j.source.Allocation() }

// Checkpoint returns the token of the mini-batches acknowledged so far. A job that is submitted with it as
// Options.Resume delivers every mini-batch that was not acknowledged, and no mini-batch that was.
func (j *Job) Checkpoint() dataset.Token {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.epoch.Progress.Token()
}

// Queue returns the state of the input queue.
func (j *Job) Queue() QueueStatus {
	j.mu.Lock()
	defer j.mu.Unlock()
	status := QueueStatus{LimitBytes: j.options.QueueBytes}
	addStall := func(epoch int, stats inputqueue.Statistics) {
		status.Stall += stats.Stall
		status.TakenRows += stats.TakenRows
		if epoch > 0 { // the trainer ran already when the epoch began
			status.Stall += stats.FirstWait
		}
	}
	for epoch, stats := range j.tally.epochs {
		addStall(epoch, stats)
	}
	if j.tally.current != nil {
		stats := j.tally.current.Statistics()
		status.MiniBatches, status.Bytes, status.Full = stats.Depth, stats.Bytes, stats.Waiters > 0
		addStall(len(j.tally.epochs), stats)
	}
	return status
}

// Acknowledge records that the trainer is done with a mini-batch of the current epoch. The iterator acknowledges
// each mini-batch when the next one is asked for. A launcher that ends the loop early, or keeps mini-batches longer,
// calls Acknowledge itself.
func (j *Job) Acknowledge(name tensor.Name) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if name.Job != [32]byte(j.epoch.Progress.Job()) || name.Epoch != j.epoch.Number {
		return fmt.Errorf("acknowledge %v: %w", name, dataset.ErrOtherJob)
	}
	return j.acknowledgeNumber(name.Number)
}

// acknowledgeNumber counts a mini-batch as acknowledged and tells the source. j.mu is held.
func (j *Job) acknowledgeNumber(number uint64) error {
	if j.epoch.Progress.Acked(number) {
		return nil
	}
	if err := j.epoch.Progress.Ack(number); err != nil {
		return err
	}
	return j.source.Acknowledged(j.epoch.Number, number)
}

// MiniBatches iterates over the mini-batches that are not acknowledged yet, epoch after epoch. One iteration at a time.
//
// A mini-batch is acknowledged and released when the next one is asked for; to keep it longer, call Retain and later
// Release. A loop that ends early leaves its last mini-batch unacknowledged: call Acknowledge before the end if the
// trainer has made its step.
//
// An error ends the iteration. It is the first error of the job, and no later mini-batch is delivered. If every
// mini-batch was acknowledged before the iteration began, the error is ErrNothingLeft. The iteration of a rank that
// owns no mini-batch ends without an error and with a line in the log.
func (j *Job) MiniBatches(ctx context.Context) iter.Seq2[*tensor.MiniBatch, error] {
	return func(yield func(*tensor.MiniBatch, error) bool) {
		if err := j.beginIteration(); err != nil {
			yield(nil, err)
			return
		}
		defer j.endIteration()
		before, ownsNone := j.deliveredBatches()
		for {
			more, err := j.iterateEpoch(ctx, yield)
			if err == nil && more {
				err = j.beginNextEpoch(ctx)
				if errors.Is(err, io.EOF) {
					more, err = false, j.checkDelivered(before, ownsNone)
				}
			}
			if err != nil {
				yield(nil, err)
			}
			if err != nil || !more {
				return
			}
		}
	}
}

// checkDelivered returns ErrNothingLeft if the iteration has delivered nothing although the rank owns mini-batches.
// before is how many mini-batches the job had delivered when the iteration began.
func (j *Job) checkDelivered(before int64, ownsNone bool) error {
	delivered, _ := j.deliveredBatches()
	switch {
	case delivered > before:
		return nil
	case ownsNone:
		j.options.Logger.Warn("there is no mini-batch for this rank: the data have no row, or fewer mini-batches than "+
			"there are ranks",
			"digest", j.digest.String()[:12])
		return nil
	}
	return fmt.Errorf("%w: every one was acknowledged before this iteration, up to %v; "+
		"submit a job without that token to go over the data once more",
		ErrNothingLeft, j.Checkpoint())
}

// deliveredBatches returns how many mini-batches the trainer has got so far, and whether the trainer owns no
// mini-batch of the current epoch, acknowledged ones included.
func (j *Job) deliveredBatches() (batches int64, ownsNone bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tally.batches, j.epoch.Empty()
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
	j.recorder = j.options.Recording.Start(j.options.Logger)
	return nil
}

func (j *Job) endIteration() {
	j.recorder.Stop()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.iterating = false
}

// beginNextEpoch makes the next epoch the current one. It returns io.EOF after the last epoch.
func (j *Job) beginNextEpoch(ctx context.Context) error {
	epoch, err := j.source.Epoch(ctx)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.epoch = epoch
	return nil
}

// iterateEpoch delivers the mini-batches that the current epoch still owes. more is false if the consumer has ended
// the loop.
func (j *Job) iterateEpoch(ctx context.Context, yield func(*tensor.MiniBatch, error) bool) (more bool, err error) {
	d, err := j.startDelivery(ctx)
	if err != nil {
		return false, err
	}
	defer j.stopDelivery(d)
	for first := true; ; first = false {
		mb, err := j.nextBatch(ctx, d, first)
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if !yield(mb, nil) {
			mb.Release()
			return false, nil
		}
		if err := j.finishBatch(mb); err != nil {
			return false, err
		}
	}
}

// startDelivery starts the delivery of the mini-batches that the current epoch still owes.
func (j *Job) startDelivery(ctx context.Context) (*delivery.Delivery, error) {
	j.mu.Lock()
	epoch := j.epoch
	settled, err := epoch.Settled()
	j.mu.Unlock()
	if err != nil {
		return nil, err
	}
	d, err := delivery.New(ctx, epoch, settled, delivery.Options{Job: epoch.Progress.Job(), Order: j.options.Order,
		QueueBytes: j.options.QueueBytes, Memory: &j.memory, Queue: j.Queue, Now: j.options.Now, Logger: j.options.Logger,
		Begin: j.source.Begin})
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	j.tally.current, j.tally.begun = d, j.options.Now()
	j.mu.Unlock()
	d.Start()
	return d, nil
}

// stopDelivery ends a delivery and adds its statistics to the job's.
func (j *Job) stopDelivery(d *delivery.Delivery) {
	d.Stop()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tally.elapsed += j.options.Now().Sub(j.tally.begun)
	j.tally.epochs = append(j.tally.epochs, d.Statistics())
	j.tally.busiestDrives = max(j.tally.busiestDrives, d.BusiestDrives())
	j.tally.current, j.tally.begun = nil, time.Time{}
}

// nextBatch waits for the next mini-batch and counts it as delivered. The wait for the first mini-batch is not
// starvation, so it is not recorded.
func (j *Job) nextBatch(ctx context.Context, d *delivery.Delivery, first bool) (*tensor.MiniBatch, error) {
	stopWatch := func() {}
	if !first {
		stopWatch = j.recorder.WatchWait()
	}
	mb, makers, err := d.Next(ctx)
	stopWatch()
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // a queue that is not empty hides that ctx has ended
		mb.Release()
		return nil, context.Cause(ctx)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, m := range makers {
		of := j.tally.drives[m.Drive]
		of.rows += int64(m.Rows)
		of.fragments++
		if m.First {
			of.batches++
		}
		j.tally.drives[m.Drive] = of
	}
	j.tally.rows += int64(mb.Rows)
	j.tally.batches++
	j.tally.bytes += mb.Bytes()
	return mb, nil
}

// finishBatch acknowledges and releases a mini-batch that the trainer is done with.
func (j *Job) finishBatch(mb *tensor.MiniBatch) error {
	j.mu.Lock()
	err := j.acknowledgeNumber(mb.Name.Number)
	j.mu.Unlock()
	mb.Release()
	return err
}

// Close closes the job's source. It fails while an iteration is under way.
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
