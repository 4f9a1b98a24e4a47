package trainmgr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
)

// Job is a submitted job.
type Job struct {
	storage api.Storage
	o       Options
	data    *api.Dataset
	digest  dataset.Digest
	schema  *tensor.Schema
	plan    *dataset.Plan // of the epoch that Progress counts
	alloc   Allocation

	mu        sync.Mutex
	progress  *dataset.Progress // of the current epoch
	epoch     uint64
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

// Submit hands a job to the storage side, measures T and P, and allocates drives. No mini-batch is made before
// MiniBatches is called.
func Submit(ctx context.Context, storage api.Storage, o Options) (*Job, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	data, err := storage.Dataset(ctx)
	if err != nil {
		return nil, fmt.Errorf("submit job: read the data set: %w", err)
	}
	resolved, err := o.Pipeline.Resolve(data.Columns)
	if err != nil {
		return nil, fmt.Errorf("submit job: %w", err)
	}
	resolved.Malformed = data.Malformed
	_, schema, err := pipeline.Lower(resolved)
	if err != nil {
		return nil, fmt.Errorf("submit job: %w", err)
	}
	manifest, err := data.Manifest.Digest()
	if err != nil {
		return nil, fmt.Errorf("submit job: %w", err)
	}
	digest, err := dataset.JobDigest(manifest, resolved.Canonical(), o.plan(0))
	if err != nil {
		return nil, fmt.Errorf("submit job: %w", err)
	}
	j := &Job{storage: storage, o: o, data: data, digest: digest, schema: schema}
	if o.Resume != nil {
		j.epoch = o.Resume.Epoch
		if j.epoch >= uint64(o.Epochs) {
			return nil, fmt.Errorf("submit job: resume: %w: the token is of epoch %d, counted from 0, and the job has %d", ErrOptions, j.epoch, o.Epochs)
		}
	}
	if j.plan, err = dataset.NewPlan(data.Manifest, o.plan(j.epoch)); err != nil {
		return nil, fmt.Errorf("submit job: %w", err)
	}
	if o.Resume != nil {
		j.progress, err = dataset.Resume(*o.Resume, digest, j.plan.MiniBatches())
		if err != nil {
			return nil, fmt.Errorf("submit job: resume: %w", err)
		}
	} else {
		j.progress = dataset.NewProgress(digest, j.epoch, j.plan.MiniBatches())
	}
	spec := &api.Job{Digest: digest, Pipeline: o.Pipeline, Plan: j.plan.Options()}
	if err := storage.Prepare(ctx, spec); err != nil {
		return nil, fmt.Errorf("submit job: prepare drives: %w", err)
	}
	if err := j.allocate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("submit job: %w", err), storage.Finish(context.WithoutCancel(ctx), digest))
	}
	return j, nil
}

// allocate measures T and P and decides how many drives run.
func (j *Job) allocate(ctx context.Context) error {
	holders, err := j.holders()
	if err != nil {
		return err
	}
	if j.o.AllDrives {
		n := 0
		for _, d := range j.data.Drives {
			n += min(1, len(d.Partitions))
		}
		if j.o.MaxDrives > 0 {
			n = min(n, j.o.MaxDrives)
		}
		j.alloc = Allocation{Drives: n, Wanted: n, Note: "every drive runs, as asked; T and P were not measured"}
		return nil
	}
	t := j.o.RowsPerSecond
	if t == 0 && len(j.o.Ranks) > 0 {
		dummy, err := Dummy(j.schema, j.plan.Options().Batch, j.data.MeanLength)
		if err != nil {
			return err
		}
		if t, err = Throughput(ctx, dummy, j.o.Throughput, j.o.Ranks...); err != nil {
			return err
		}
		j.o.Logger.Info("measured T", "job", j.digest.String()[:12], "t_rows_per_second", t)
	}
	var loads []DriveLoad
	for _, d := range j.data.Drives {
		load := DriveLoad{Name: d.Name}
		held := int64(0)
		for _, p := range d.Partitions {
			held += j.data.Manifest.Partitions[p].Rows
			load.Rows += j.data.Manifest.Partitions[p].Rows / int64(holders[p])
		}
		if held == 0 {
			continue // it has nothing to preprocess, and nothing to measure P with
		}
		m, err := j.storage.Measure(ctx, j.digest, d.Name)
		if err != nil {
			return fmt.Errorf("measure P of drive %s: %w", d.Name, err)
		}
		load.RowsPerSecond = m.RowsPerSecond
		loads = append(loads, load)
		j.o.Logger.Info("measured P", "job", j.digest.String()[:12], "drive", d.Name, "p_rows_per_second", m.RowsPerSecond)
	}
	a, err := Allocate(t, loads, j.o.MaxDrives)
	if err != nil {
		return err
	}
	j.alloc = a
	j.o.Logger.Info("allocated drives", "job", j.digest.String()[:12], "drives", a.Drives, "wanted", a.Wanted, "expected_stall_seconds", a.ExpectedStall.Seconds(), "note", a.Note)
	return nil
}

// holders counts, for each partition, the drives that hold it.
func (j *Job) holders() ([]int, error) {
	holders := make([]int, len(j.data.Manifest.Partitions))
	for _, d := range j.data.Drives {
		for _, p := range d.Partitions {
			holders[p]++
		}
	}
	for i, n := range holders {
		if n == 0 {
			return nil, fmt.Errorf("%w: no drive holds partition %s", ErrOptions, j.data.Manifest.Partitions[i].Name)
		}
	}
	return holders, nil
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
	return j.plan
}

// Allocation tells T, P, the drives allocated, and the stall to expect, before the job starts.
func (j *Job) Allocation() Allocation { return j.alloc }

// Checkpoint returns the token of what has been acknowledged so far. A job submitted with it as Options.Resume never
// delivers an acknowledged mini-batch again, and delivers every other one.
func (j *Job) Checkpoint() dataset.Token {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.progress.Token()
}

// Acknowledge says that the trainer is done with a mini-batch of the current epoch. The iterator does so by itself when the next one is
// asked for; a launcher that stops in the middle, or keeps mini-batches longer, may say it earlier.
func (j *Job) Acknowledge(name tensor.Name) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if name.Job != [32]byte(j.digest) || name.Epoch != j.epoch {
		return fmt.Errorf("acknowledge %v: %w", name, dataset.ErrOtherJob)
	}
	return j.progress.Ack(name.Number)
}

// MiniBatches iterates over the mini-batches that are not acknowledged yet, epoch after epoch. A mini-batch is
// acknowledged and released when the next one is asked for: who keeps it longer calls Retain and later Release. A loop that
// ends early leaves its last mini-batch unacknowledged. An error ends the iteration; it is the first thing that went
// wrong, and nothing behind it is delivered. One iteration at a time.
func (j *Job) MiniBatches(ctx context.Context) iter.Seq2[*tensor.MiniBatch, error] {
	return func(yield func(*tensor.MiniBatch, error) bool) {
		if err := j.beginIteration(); err != nil {
			yield(nil, err)
			return
		}
		defer j.endIteration()
		for {
			more, err := j.iterateEpoch(ctx, yield)
			if err != nil {
				yield(nil, err)
				return
			}
			if !more || !j.nextEpoch() {
				return
			}
		}
	}
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
	return nil
}

func (j *Job) endIteration() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.iterating = false
}

// nextEpoch moves to the next epoch; false after the last.
func (j *Job) nextEpoch() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.epoch+1 >= uint64(j.o.Epochs) {
		return false
	}
	plan, err := dataset.NewPlan(j.data.Manifest, j.o.plan(j.epoch+1))
	if err != nil { // the same options made a plan before
		return false
	}
	j.epoch++
	j.plan = plan
	j.progress = dataset.NewProgress(j.digest, j.epoch, plan.MiniBatches())
	return true
}

// iterateEpoch delivers what the current epoch still owes. more is false when the consumer stopped.
func (j *Job) iterateEpoch(ctx context.Context, yield func(*tensor.MiniBatch, error) bool) (more bool, err error) {
	e := j.startEpoch(ctx)
	defer e.stop()
	for {
		mb, err := e.queue.get(ctx)
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
	err := j.progress.Ack(mb.Name.Number)
	j.mu.Unlock()
	mb.Release()
	return err
}

// Close forgets the job on the storage side and frees what it held there. No iteration may be running.
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
	if err := j.storage.Finish(context.Background(), j.digest); err != nil {
		return fmt.Errorf("close job: %w", err)
	}
	return nil
}
