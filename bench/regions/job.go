package regions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/processor"
)

// job makes the mini-batches of a workload in a region, again and again. It has one user.
type job struct {
	stage     *stage
	work      *work
	device    *sdk.Device
	processor processor.Processor
	stream    processor.Stream // nil: the partition begins again
}

// newJob begins a job in a region. A job of turns makes a mini-batch only when it is asked for one, so that its region
// is idle in between.
func (s *stage) newJob(ctx context.Context, region int, w *work, turns bool) (*job, error) {
	dev, err := s.openRegion(ctx, region)
	if err != nil {
		return nil, err
	}
	o := processor.Options{Streams: 1, Sync: turns}
	if s.o.Timing != nil {
		// The model's rate needs two commands at a time, and follows from the image of the workload.
		o.Streams = 2
		if err := dev.ActivateImage(ctx, imageSlot+slices.Index(s.slots, w.image)); err != nil {
			return nil, errors.Join(err, dev.Close())
		}
	}
	p, err := sdk.NewProcessor(ctx, dev, w.program, w.schema, o)
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return &job{stage: s, work: w, device: dev, processor: p}, nil
}

// newJobs begins a job in each of the first regions, of workloads in turn.
func (s *stage) newJobs(ctx context.Context, works ...*work) (list jobs, err error) {
	for region, w := range works {
		j, err := s.newJob(ctx, region, w, false)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("job in region %d: %w", region, err), list.closeAll())
		}
		list = append(list, j)
	}
	return list, nil
}

// makeMiniBatch makes a mini-batch, and returns how many rows it has.
func (j *job) makeMiniBatch(ctx context.Context) (int, error) {
	for {
		if j.stream == nil {
			p := j.work.partition
			s, err := j.processor.Open(ctx, processor.Run{Partition: p, Rows: p.Rows, Batch: j.work.batch})
			if err != nil {
				return 0, err
			}
			j.stream = s
		}
		mb, err := j.stream.Next(ctx)
		if errors.Is(err, io.EOF) {
			err, j.stream = j.stream.Close(), nil
			if err != nil {
				return 0, err
			}
			continue
		}
		if err != nil {
			return 0, err
		}
		rows := mb.Rows
		mb.Release()
		return rows, nil
	}
}

func (j *job) closeStream() error {
	var err error
	if j.stream != nil {
		err = j.stream.Close()
	}
	return errors.Join(err, j.processor.Close(), j.device.Close())
}

// jobs are those of several regions.
type jobs []*job

func (list jobs) closeAll() error {
	var err error
	for _, j := range list {
		err = errors.Join(err, j.closeStream())
	}
	return err
}

// measureRates runs the jobs for a time, after a mini-batch of each that does not count, and returns the rows a second
// of each.
func (list jobs) measureRates(ctx context.Context, d time.Duration) ([]float64, error) {
	rates, errs := make([]float64, len(list)), make([]error, len(list))
	var ready, done sync.WaitGroup
	ready.Add(len(list))
	for i, j := range list {
		done.Go(func() {
			_, errs[i] = j.makeMiniBatch(ctx)
			ready.Done()
			ready.Wait()
			if errs[i] == nil {
				rates[i], errs[i] = j.measureRate(ctx, d)
			}
		})
	}
	done.Wait()
	return rates, errors.Join(errs...)
}

// measureRate runs a job for a time.
func (j *job) measureRate(ctx context.Context, d time.Duration) (float64, error) {
	begin, rows := j.stage.pacedTime(), 0
	for rows == 0 || j.stage.pacedTime().Sub(begin) < d {
		n, err := j.makeMiniBatch(ctx)
		if err != nil {
			return 0, err
		}
		rows += n
	}
	return float64(rows) / j.stage.pacedTime().Sub(begin).Seconds(), nil
}

// runInBackground runs step, once at least, until stop is called or it fails. stop returns the error of the step that
// failed.
func runInBackground(step func() error) (stop func() error) {
	ended, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			if err := step(); err != nil {
				failed <- err
				return
			}
			select {
			case <-ended:
				failed <- nil
				return
			default:
			}
		}
	}()
	return func() error {
		close(ended)
		return <-failed
	}
}

// startMiniBatches makes mini-batches of the jobs until stop is called.
func (list jobs) startMiniBatches(ctx context.Context) (stop func() error) {
	var stops []func() error
	for _, j := range list {
		stops = append(stops, runInBackground(func() error {
			_, err := j.makeMiniBatch(ctx)
			return err
		}))
	}
	return func() error {
		var err error
		for _, stop := range stops {
			err = errors.Join(err, stop())
		}
		return err
	}
}
