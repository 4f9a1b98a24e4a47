package pipeline

import (
	"context"
	"errors"
	"io"
	"math"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/bench/cluster"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/internal/processors"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
)

// aloneJob names the job of the ways without a trainer. A manager without a manifest takes any digest.
var aloneJob = dataset.Digest{1}

// alone is the route of an engine without a trainer: the splits of every epoch are made by as many streams as the drive
// has, and the mini-batches are given up at once.
func (s *stage) alone(ctx context.Context, m **host.Manager,
	open func(context.Context) (*host.Manager, error)) (*route, error) {
	manager, err := s.manager(ctx, m, open)
	if err != nil {
		return nil, err
	}
	data, err := manager.Dataset(ctx)
	if err != nil {
		return nil, err
	}
	drive := data.Drives[0]
	r := &route{trainer: processors.Time, workers: drive.Streams}
	run := func(ctx context.Context, epochs int, take func(*tensor.MiniBatch) (bool, error)) error {
		job := &api.Job{Digest: aloneJob, Pipeline: s.spec, Plan: dataset.Options{Batch: s.spec.Batch}}
		if err := manager.Prepare(ctx, job); err != nil {
			return err
		}
		err := makeSplits(ctx, manager, drive, epochs, take)
		return errors.Join(err, manager.Finish(context.WithoutCancel(ctx), aloneJob))
	}
	r.pass = func(ctx context.Context, a *account) error {
		return run(ctx, 1, func(mb *tensor.MiniBatch) (bool, error) { return true, a.addBatch(mb, false) })
	}
	r.flow = func(ctx context.Context, more func(int, int64) bool) error {
		return run(ctx, math.MaxInt, func(mb *tensor.MiniBatch) (bool, error) { return more(mb.Rows, mb.Bytes()), nil })
	}
	return r, nil
}

// makeSplits makes the splits of a number of epochs, each stream one after the other, and hands the mini-batches to
// take, one at a time, until take reports false.
func makeSplits(ctx context.Context, manager *host.Manager, drive api.Drive, epochs int,
	take func(*tensor.MiniBatch) (bool, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg    sync.WaitGroup
		next  atomic.Int64
		mu    sync.Mutex // guards all below
		ended bool
		first error
	)
	handOver := func(mb *tensor.MiniBatch) (more bool, err error) {
		mu.Lock()
		defer mu.Unlock()
		defer mb.Release()
		if !ended {
			more, err = take(mb)
			ended = !more || err != nil
		}
		return !ended, err
	}
	stream := func() error {
		for {
			at := int(next.Add(1) - 1)
			plan, err := manager.Plan(aloneJob, 0)
			if err != nil || at/plan.Splits() >= epochs {
				return err
			}
			split, err := plan.Split(at % plan.Splits())
			if err != nil {
				return err
			}
			opened, err := manager.Open(ctx, api.SplitRequest{Job: aloneJob, Drive: drive.Name, Split: split})
			if err != nil {
				return err
			}
			more, err := drain(ctx, opened, handOver)
			if err = errors.Join(err, opened.Close()); err != nil || !more {
				return err
			}
		}
	}
	for range drive.Streams {
		wg.Go(func() {
			if err := stream(); err != nil {
				mu.Lock()
				if !ended { // the other streams' errors follow from the first
					first, ended = err, true
				}
				mu.Unlock()
				cancel()
			}
		})
	}
	wg.Wait()
	return first
}

// drain hands the mini-batches of a stream over until handOver reports false.
func drain(ctx context.Context, s api.Stream, handOver func(*tensor.MiniBatch) (bool, error)) (more bool, err error) {
	for {
		mb, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if more, err := handOver(mb); err != nil || !more {
			return false, err
		}
	}
}

// inProcess is the route of a trainer in this process, over the drive of this process.
func (s *stage) inProcess(ctx context.Context) (*route, error) {
	manager, err := s.manager(ctx, &s.onDrive, s.openDrive)
	if err != nil {
		return nil, err
	}
	r := &route{trainer: processors.Time, workers: 1}
	run := func(ctx context.Context, epochs int, take func(*tensor.MiniBatch) (bool, error)) error {
		job, err := trainmgr.Submit(ctx, manager, trainmgr.Options{Pipeline: s.spec, Epochs: epochs, AllDrives: true})
		if err != nil {
			return err
		}
		return errors.Join(cluster.Each(job.MiniBatches(ctx), take), job.Close())
	}
	r.pass = func(ctx context.Context, a *account) error {
		return run(ctx, 1, func(mb *tensor.MiniBatch) (bool, error) { return true, a.addBatch(mb, false) })
	}
	r.flow = func(ctx context.Context, more func(int, int64) bool) error {
		return run(ctx, math.MaxInt32, func(mb *tensor.MiniBatch) (bool, error) { return more(mb.Rows, mb.Bytes()), nil })
	}
	return r, nil
}
