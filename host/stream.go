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

// stream makes the fragments of one split for one request. It implements api.Stream.
type stream struct {
	job       *job
	processor *driveProcessor
	request   api.SplitRequest
	plan      *dataset.Plan // plan is that of the request's epoch.
	source    processor.Stream
	next      int                 // fragment of the split that the source makes next
	unwanted  int                 // fragments that come before the requested one, of the same window
	mixed     []*tensor.MiniBatch // mixed are those of the current window, with their rows mixed, that are not taken.
	partition *splitPartition
	closed    bool
}

// openStream opens a stream. With mixed rows it begins at the first fragment of the window that the request begins in.
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
		return nil, fmt.Errorf("order of fragment %d of %v, and the plan has %v: both sides must plan alike",
			request.From, request.Split, split)
	}
	s := &stream{job: j, processor: p, request: request, plan: plan, next: request.From, partition: part}
	if o := plan.Options(); o.Shuffle == dataset.ShuffleRows {
		s.unwanted = s.next % o.Window
		s.next -= s.unwanted
	}
	if err := part.checkUnchanged(ctx); err != nil {
		return nil, part.failed(ctx, err)
	}
	batch := plan.Options().Batch
	first := split.Fragment(batch, s.next)
	_, selected := j.rows(split.Partition)
	s.source, err = p.Open(ctx, processor.Run{
		Partition: part.Partition, First: first.First, Rows: split.First + split.Rows - first.First, Batch: batch,
		FirstBatch: first.Rows, Selected: selected,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Next returns the next fragment, named; io.EOF ends the split.
func (s *stream) Next(ctx context.Context) (*tensor.MiniBatch, error) {
	for {
		mb, err := s.nextMixed(ctx)
		if err != nil {
			return nil, err
		}
		if s.unwanted == 0 {
			// Behind the mixing of rows, which decides which rows meet. A fragment that is not a whole mini-batch stays as
			// it is: tensor.Memory.Join deduplicates the mini-batch.
			unique, err := mb.Deduplicate()
			if err != nil {
				mb.Release()
				return nil, err
			}
			return unique, nil
		}
		s.unwanted--
		mb.Release()
	}
}

// nextMixed returns the next fragment, with its rows mixed inside its window where the plan says so.
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

// mixWindow makes the fragments of one window and mixes their rows. It copies them as they come, so that a window does
// not hold the drive's memory.
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
			return fmt.Errorf("the split ended %d fragments into a window of %d", len(unmixed), window.Fragments)
		}
		if err != nil {
			return err
		}
		unmixed = append(unmixed, mb.Own())
	}
	s.mixed, err = tensor.Gather(unmixed, permutation)
	return err
}

// nextNamed takes the next fragment from the source and gives it its name, and its place if it is not the whole
// mini-batch.
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
		return nil, fmt.Errorf("the drive made more than the split's %d fragments", split.Fragments)
	}
	fragment := split.Fragment(s.plan.Options().Batch, s.next)
	if mb.Rows != fragment.Rows {
		defer mb.Release()
		return nil, fmt.Errorf("the drive made %d rows for fragment %d of %v, which has %d", mb.Rows, s.next, split,
			fragment.Rows)
	}
	s.job.noteLent(s.processor, mb)
	mb.Name = tensor.Name{Job: [32]byte(s.request.Job), Epoch: s.request.Epoch, Number: fragment.MiniBatch}
	mb.Fragment.Index, mb.Fragment.Of = s.plan.Place(fragment)
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
