// Package profilepass times a trainer and drives in passes over a job's first epoch, as FastFlow's profile needs. A
// pass takes mini-batches until it has enough of them, and forgets them.
//
// # Overview
//
//	passes := &profilepass.Passes{Storage: storage, Job: digest, Plan: plan, Dummy: dummy, Step: step, Steps: 50}
//	alone, err := passes.Trainer(ctx)                // the trainer alone, on one mini-batch
//	both, pipeline, err := passes.Side(ctx, drives)  // drives with the trainer, and without it
//
// # Concurrency
//
// One pass runs at a time. Its goroutines end before it returns.
//
// # Errors
//
// [ErrNoSplit] says that the drives hold no split of the epoch. Errors of a drive name the drive.
package profilepass

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/internal/processors"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// ErrNoSplit says that the drives of a pass hold no split of the epoch.
var ErrNoSplit = errors.New("no split is there to profile with")

// Passes are the passes of one profile.
type Passes struct {
	Storage    api.Storage
	Job        dataset.Digest
	Epoch      uint64
	Plan       *dataset.Plan
	Dummy      *tensor.MiniBatch // a mini-batch of the job's size
	QueueBytes int64             // bound of the job's input queue
	Step       func(ctx context.Context, mb *tensor.MiniBatch) error
	Steps      int           // least mini-batches of a pass, after its warm-up
	Time       time.Duration // least time of a pass, after its warm-up
}

// Rates are the measurements of a pass.
type Rates struct {
	RowsPerSecond float64
	CPUPerRow     float64 // processor seconds of this process
}

// queueDepth returns how many mini-batches wait for the trainer at most in a pass of some streams: a split of each, as
// far as the job's input queue has room. A drive makes the mini-batches of a slice at once, and in the job the queue
// lets the trainer go on meanwhile.
func (p *Passes) queueDepth(streams int) int {
	room := p.QueueBytes / max(p.Dummy.Bytes(), 1)
	wanted := int64(streams) * int64(p.Plan.Options().SplitBatches)
	return int(max(1, min(wanted, room)))
}

// Trainer times the trainer alone: every step gets the same mini-batch.
func (p *Passes) Trainer(ctx context.Context) (Rates, error) {
	window := newWindow(p.Steps, 2, p.Time)
	for !window.whole() {
		if err := errors.Join(p.Step(ctx, p.Dummy), ctx.Err()); err != nil {
			return Rates{}, err
		}
		window.count(p.Dummy.Rows, time.Now(), processors.Time())
	}
	return window.measured(), nil
}

// Side times drives with the trainer, and then without it.
func (p *Passes) Side(ctx context.Context, drives []api.Drive) (both, pipeline Rates, err error) {
	if both, err = p.pass(ctx, drives, p.Step); err != nil {
		return both, pipeline, err
	}
	pipeline, err = p.pass(ctx, drives, nil)
	return both, pipeline, err
}

// errPassOver ends the streams of a pass.
var errPassOver = errors.New("the profile has what it needs")

// pass takes mini-batches of some drives, with a step of the trainer on each or without one, and times them. It
// begins at the first split that a drive holds, and starts over when the splits are used up.
func (p *Passes) pass(ctx context.Context, drives []api.Drive,
	step func(ctx context.Context, mb *tensor.MiniBatch) error) (Rates, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errPassOver)
	var streams sync.WaitGroup
	held := make([][]dataset.Split, len(drives))
	concurrent := 0
	for i, d := range drives {
		held[i] = p.splitsOn(d)
		concurrent += min(max(d.Streams, 1), len(held[i]))
	}
	if concurrent == 0 {
		return Rates{}, ErrNoSplit
	}
	batches := make(chan *tensor.MiniBatch, p.queueDepth(concurrent))
	for i, d := range drives {
		splits := held[i]
		var next atomic.Int64
		for range min(max(d.Streams, 1), len(splits)) {
			streams.Go(func() {
				whole := filler{batchRows: p.Plan.Options().Batch, batches: batches}
				for ctx.Err() == nil {
					split := splits[int(next.Add(1)-1)%len(splits)]
					if err := p.takeSplit(ctx, d, split, &whole); err != nil {
						cancel(err)
					}
				}
			})
		}
	}
	defer func() {
		cancel(errPassOver)
		streams.Wait()
		for len(batches) > 0 {
			(<-batches).Release()
		}
	}()
	window := newWindow(p.Steps, 2+2*concurrent, p.Time)
	for !window.whole() {
		select {
		case mb := <-batches:
			rows := mb.Rows
			var err error
			if step != nil {
				err = step(ctx, mb)
			}
			mb.Release()
			if err != nil {
				return Rates{}, err
			}
			window.count(rows, time.Now(), processors.Time())
		case <-ctx.Done():
			return Rates{}, context.Cause(ctx)
		}
	}
	return window.measured(), nil
}

// splitsOn returns the splits of the first epoch that a drive holds and that have rows.
func (p *Passes) splitsOn(d api.Drive) (splits []dataset.Split) {
	held := map[int]bool{}
	for _, partition := range d.Partitions {
		held[partition] = true
	}
	for split := range p.Plan.All() {
		if held[split.Partition] && split.Fragments > 0 {
			splits = append(splits, split)
		}
	}
	return splits
}

// takeSplit passes on the mini-batches of a split until the pass is over, and mini-batches that it fills with the rows
// of fragments.
func (p *Passes) takeSplit(ctx context.Context, d api.Drive, split dataset.Split, whole *filler) (err error) {
	stream, err := p.Storage.Open(ctx, api.SplitRequest{Job: p.Job, Drive: d.Name,
		Epoch: p.Epoch, Split: split})
	if err != nil {
		return fmt.Errorf("drive %s: %w", d.Name, err)
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	for {
		mb, err := stream.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("drive %s: %w", d.Name, err)
		}
		if mb.Fragment == (tensor.Fragment{}) {
			err = whole.pass(ctx, mb)
		} else {
			err = whole.add(ctx, mb)
		}
		if err != nil {
			return fmt.Errorf("drive %s: %w", d.Name, err)
		}
	}
}

// filler fills mini-batches with the rows of fragments as they come. The other fragments of their own mini-batches are
// on other drives, perhaps, and a step of the trainer on fewer rows has another rate. The mini-batches are none of the
// job's.
type filler struct {
	batchRows int
	batches   chan<- *tensor.MiniBatch
	filling   *tensor.Compactor // nil: no mini-batch is begun
}

// add takes the rows of a fragment, and releases it. It passes on each mini-batch that is full.
func (f *filler) add(ctx context.Context, fragment *tensor.MiniBatch) error {
	defer fragment.Release()
	for taken := 0; taken < fragment.Rows; {
		var err error
		if f.filling == nil {
			if f.filling, err = tensor.NewCompactor(fragment.Schema, f.batchRows); err != nil {
				return err
			}
		}
		rows := make([]uint32, min(fragment.Rows-taken, f.filling.Missing()))
		for i := range rows {
			rows[i] = uint32(taken + i)
		}
		if err := f.filling.Append(fragment, rows); err != nil {
			return err
		}
		if taken += len(rows); f.filling.Missing() > 0 {
			return nil
		}
		full, err := f.filling.MiniBatch()
		if err != nil {
			return err
		}
		f.filling, full.Name = nil, fragment.Name
		unique, err := full.Deduplicate()
		if err != nil {
			full.Release()
			return err
		}
		if err := f.pass(ctx, unique); err != nil {
			return err
		}
	}
	return nil
}

// pass passes on a mini-batch, or releases it if the pass is over.
func (f *filler) pass(ctx context.Context, mb *tensor.MiniBatch) error {
	select {
	case f.batches <- mb:
		return nil
	case <-ctx.Done():
		mb.Release()
		return context.Cause(ctx)
	}
}

// window is the part of a pass that counts: the mini-batches after the warm-up. It has at least steps mini-batches and
// lasts for least. The warm-up has a number of mini-batches and lasts for a share of least: a side that starts has
// empty buffers, and fills them while the trainer's first steps run.
type window struct {
	steps, warmup int
	least         time.Duration
	seen          int
	rows          int64
	started       time.Time // when the first mini-batch was counted
	begun         time.Time // end of the warm-up; zero: still in it
	begunAt       int       // mini-batches of the warm-up
	begunCPU      time.Duration
	took, tookCPU time.Duration
}

const (
	// WarmupShare is the share of a pass's least time that its warm-up lasts.
	WarmupShare = 0.25
	// mostSteps bounds a window, in multiples of its steps, where the clock stands still.
	mostSteps = 1000
)

func newWindow(steps, warmup int, least time.Duration) *window {
	return &window{steps: steps, warmup: warmup, least: least}
}

// count counts a mini-batch that the trainer is done with at a time, with the processor time of this process so far.
func (w *window) count(rows int, now time.Time, cpu time.Duration) {
	w.seen++
	if w.started.IsZero() {
		w.started = now
	}
	if w.begunAt == 0 {
		warm := now.Sub(w.started) >= time.Duration(WarmupShare*float64(w.least)) || w.seen >= mostSteps*w.steps
		if w.seen >= w.warmup && warm {
			w.begun, w.begunCPU, w.begunAt = now, cpu, w.seen
		}
		return
	}
	w.rows += int64(rows)
	w.took, w.tookCPU = now.Sub(w.begun), cpu-w.begunCPU
}

// whole reports whether the window has enough mini-batches and time.
func (w *window) whole() bool {
	if w.begunAt == 0 {
		return false
	}
	counted := w.seen - w.begunAt
	return counted >= w.steps && w.took >= w.least || counted >= mostSteps*w.steps
}

// measured returns the measurements of the window.
func (w *window) measured() Rates {
	seconds := math.Max(w.took.Seconds(), 1e-9) // the clock may stand still
	rows := math.Max(float64(w.rows), 1)
	return Rates{RowsPerSecond: rows / seconds, CPUPerRow: math.Max(w.tookCPU.Seconds(), 0) / rows}
}
