package trainmgr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// epochRun is one epoch while it is delivered: a dispatcher that owns the schedule, a worker a running split, and
// the input queue between them and the trainer.
type epochRun struct {
	job    *Job
	epoch  uint64
	plan   *dataset.Plan
	acked  func(number uint64) bool // as of the epoch's start
	queue  *queue
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the dispatcher and all workers have ended
}

// errStopped cancels the workers when the trainer takes no more.
var errStopped = errors.New("the iteration has ended")

// startEpoch starts the dispatcher over what the current epoch still owes.
func (j *Job) startEpoch(ctx context.Context) *epochRun {
	j.mu.Lock()
	defer j.mu.Unlock()
	// The workers need to know what was acknowledged before, not what the trainer acknowledges meanwhile.
	before, _ := dataset.Resume(j.progress.Token(), j.digest, j.plan.MiniBatches())
	acked := func(n uint64) bool { return before != nil && before.Acked(n) }
	total := j.plan.MiniBatches()
	following := func(n uint64) uint64 {
		for n < total && acked(n) {
			n++
		}
		return n
	}
	var after func(uint64) uint64
	if j.o.Order == Deterministic {
		after = func(n uint64) uint64 { return following(n + 1) }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	e := &epochRun{
		job: j, epoch: j.epoch, plan: j.plan, acked: acked,
		queue: newQueue(j.o.QueueBytes, following(0), after), cancel: cancel, done: make(chan struct{}),
	}
	j.tally.current, j.tally.begun = e.queue, time.Now()
	go e.dispatch(ctx)
	return e
}

// stop ends the epoch's goroutines and accounts its queue.
func (e *epochRun) stop() {
	e.cancel(errStopped)
	e.queue.close(errStopped)
	<-e.done
	e.queue.drain()
	j := e.job
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tally.elapsed += time.Since(j.tally.begun)
	j.tally.epochs = append(j.tally.epochs, e.queue.statistics())
	j.tally.current, j.tally.begun = nil, time.Time{}
}

// ended is what a worker says last.
type ended struct {
	split int
	err   error
}

// dispatch starts splits as the schedule allows until all have ended or one failed. It owns the schedule.
func (e *epochRun) dispatch(ctx context.Context) {
	defer close(e.done)
	drives := e.job.data.Drives
	streams := make([]int, len(drives))
	holders := make([][]int, len(e.job.data.Manifest.Partitions))
	for d := range drives {
		streams[d] = drives[d].Streams
		for _, p := range drives[d].Partitions {
			holders[p] = append(holders[p], d)
		}
	}
	s := newSchedule(e.job.o.Order == Deterministic, e.job.alloc.Drives, streams)
	var orders []api.Order
	for split := range e.plan.All() {
		from := 0
		for from < split.MiniBatches && e.acked(split.FirstNumber+uint64(from)) {
			from++
		}
		if from == split.MiniBatches {
			continue
		}
		s.add(split.Rows, holders[split.Partition])
		orders = append(orders, api.Order{Job: e.job.digest, Epoch: e.epoch, Split: split, From: from})
	}
	results := make(chan ended)
	var failure error
	for {
		for failure == nil && ctx.Err() == nil {
			split, drive, ok := s.start()
			if !ok {
				break
			}
			order := orders[split]
			order.Drive = drives[drive].Name
			e.job.noteActive(s.active())
			go func() { results <- ended{split, e.work(ctx, order)} }()
		}
		if s.running == 0 {
			break
		}
		r := <-results
		s.end(r.split)
		if r.err != nil && failure == nil {
			failure = r.err
			e.cancel(r.err)
		}
	}
	if failure == nil && !s.done() {
		failure = context.Cause(ctx)
	}
	e.queue.close(failure)
}

// noteActive keeps the most drives that ran at once.
func (j *Job) noteActive(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tally.busiest = max(j.tally.busiest, n)
}

// work runs one split: PreSto's worker. It puts every mini-batch that is not acknowledged into the input queue.
func (e *epochRun) work(ctx context.Context, order api.Order) (err error) {
	fail := func(err error) error {
		part := e.job.data.Manifest.Partitions[order.Split.Partition].Name
		return fmt.Errorf("drive %s: split %d (partition %s, rows %d to %d): %w", order.Drive, order.Split.Place, part,
			order.Split.First, order.Split.First+order.Split.Rows-1, err)
	}
	stream, err := e.job.storage.Open(ctx, order)
	if err != nil {
		return fail(err)
	}
	defer func() {
		if cerr := stream.Close(); cerr != nil {
			err = errors.Join(err, fail(cerr))
		}
	}()
	for number := order.Split.FirstNumber + uint64(order.From); ; number++ {
		mb, err := stream.Next(ctx)
		last := number == order.Split.FirstNumber+uint64(order.Split.MiniBatches)
		switch {
		case errors.Is(err, io.EOF) && last:
			return nil
		case errors.Is(err, io.EOF):
			return fail(fmt.Errorf("%d mini-batches, want %d", number-order.Split.FirstNumber, order.Split.MiniBatches))
		case err != nil:
			return fail(err)
		}
		want := tensor.Name{Job: e.job.digest, Epoch: e.epoch, Number: number}
		if last || mb.Name != want {
			mb.Release()
			return fail(fmt.Errorf("mini-batch %v came where %v was due", mb.Name, want))
		}
		if e.acked(number) {
			mb.Release()
			continue
		}
		if err := e.queue.put(ctx, mb); err != nil {
			mb.Release()
			return fail(err)
		}
	}
}
