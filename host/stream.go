package host

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// stream makes the mini-batches of one split for one request. It implements api.Stream.
type stream struct {
	job       *job
	processor *driveProcessor
	request   api.SplitRequest
	plan      *dataset.Plan // plan is that of the request's epoch.
	source    processor.Stream
	next      int                 // mini-batch of the split that the source makes next
	mixed     []*tensor.MiniBatch // mixed are those of the current window, with their rows mixed, that are not taken.
	partition *splitPartition
	closed    bool
}

// openStream opens a stream. With mixed rows it begins at the first mini-batch of the window that the request begins
// in.
func (j *job) openStream(ctx context.Context, p *driveProcessor, request api.SplitRequest,
	part *splitPartition) (*stream, error) {
	plan, err := j.plan(request.Epoch)
	if err != nil {
		return nil, err
	}
	split, err := plan.Split(request.Split.Position)
	if err != nil {
		return nil, err
	}
	if split != request.Split || request.From < 0 || request.From >= split.Fragments {
		return nil, fmt.Errorf("order of mini-batch %d of %v, and the plan has %v: both sides must plan alike",
			request.From, request.Split, split)
	}
	s := &stream{job: j, processor: p, request: request, plan: plan, next: request.From, partition: part}
	if o := plan.Options(); o.Shuffle == dataset.ShuffleRows {
		s.next -= s.next % o.Window
	}
	if err := part.checkUnchanged(ctx); err != nil {
		return nil, part.failed(ctx, err)
	}
	batch := plan.Options().Batch
	skipped := split.RowsBefore(batch, s.next)
	_, selected := j.rows(split.Partition)
	s.source, err = p.Open(ctx, processor.Run{
		Partition: part.Partition, First: split.First + skipped, Rows: split.Rows - skipped, Batch: batch,
		Selected: selected,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Next returns the next mini-batch, named; io.EOF ends the split.
func (s *stream) Next(ctx context.Context) (*tensor.MiniBatch, error) {
	for {
		mb, err := s.nextMixed(ctx)
		if err != nil {
			return nil, err
		}
		if mb.Name.Number >= s.request.Split.FirstFragment+uint64(s.request.From) {
			// Behind the mixing of rows, which decides which rows meet in a mini-batch.
			unique, err := mb.Deduplicate()
			if err != nil {
				mb.Release()
				return nil, err
			}
			return unique, nil
		}
		mb.Release() // it lies in the window before the requested mini-batch
	}
}

// nextMixed returns the next mini-batch, with its rows mixed inside its window where the plan says so.
func (s *stream) nextMixed(ctx context.Context) (*tensor.MiniBatch, error) {
	if s.plan.Options().Shuffle != dataset.ShuffleRows {
		return s.nextNamed(ctx)
	}
	if len(s.mixed) == 0 {
		if s.next == s.request.Split.Fragments {
			return s.nextNamed(ctx) // io.EOF, or an error
		}
		if err := s.mixWindow(ctx); err != nil {
			return nil, err
		}
	}
	mb := s.mixed[0]
	s.mixed = s.mixed[1:]
	return mb, nil
}

// mixWindow makes the mini-batches of one window and mixes their rows. It copies them as they come, so that a window
// does not hold the drive's memory.
func (s *stream) mixWindow(ctx context.Context) error {
	window, err := s.plan.Window(s.request.Split.FirstFragment + uint64(s.next))
	if err != nil {
		return err
	}
	permutation, err := s.plan.RowPermutation(window)
	if err != nil {
		return err
	}
	unmixed := make([]*tensor.MiniBatch, 0, window.Fragments)
	defer func() {
		for _, mb := range unmixed {
			mb.Release()
		}
	}()
	for range window.Fragments {
		mb, err := s.nextNamed(ctx)
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("the split ended %d mini-batches into a window of %d", len(unmixed), window.Fragments)
		}
		if err != nil {
			return err
		}
		if mb.Lent() {
			own := mb.Clone()
			mb.Release()
			mb = own
		}
		unmixed = append(unmixed, mb)
	}
	s.mixed, err = tensor.Gather(unmixed, permutation)
	return err
}

// nextNamed takes the next mini-batch from the source and gives it its name.
func (s *stream) nextNamed(ctx context.Context) (*tensor.MiniBatch, error) {
	mb, err := s.source.Next(ctx)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			err = s.partition.failed(ctx, err)
		}
		return nil, err
	}
	split := &s.request.Split
	if s.next >= split.Fragments {
		mb.Release()
		return nil, fmt.Errorf("the drive made more than the split's %d mini-batches", split.Fragments)
	}
	s.job.noteLent(s.processor, mb)
	mb.Name = tensor.Name{Job: [32]byte(s.request.Job), Epoch: s.request.Epoch,
		Number: split.FirstFragment + uint64(s.next)}
	s.next++
	if s.next == split.Fragments {
		// The blocks of the split were all read by now. They are the partition's if it did not change until now.
		if err := s.partition.checkUnchanged(ctx); err != nil {
			mb.Release()
			return nil, s.partition.failed(ctx, err)
		}
	}
	return mb, nil
}

// Close ends the split. Further calls do nothing.
func (s *stream) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	for _, mb := range s.mixed {
		mb.Release()
	}
	s.mixed = nil
	err := s.source.Close()
	s.partition.done()
	s.job.leaveProcessor(s.processor)
	return err
}
