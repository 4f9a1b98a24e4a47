package processor

import (
	"context"
	"errors"

	"github.com/millrace/millrace/sdk/targetencoding"
	"github.com/millrace/millrace/sdk/tensor"
)

// WithEncodings returns a processor whose mini-batches went through an applier of target encodings, which takes those
// of p. Keys are encoded by this host, in Next, while the engine makes the mini-batch that follows.
func WithEncodings(p Processor, applier *targetencoding.Applier) Processor {
	return &encodingProcessor{Processor: p, applier: applier}
}

type encodingProcessor struct {
	Processor
	applier *targetencoding.Applier
}

// Open implements Processor.
func (p *encodingProcessor) Open(ctx context.Context, run Run) (Stream, error) {
	s, err := p.Processor.Open(ctx, run)
	if err != nil {
		return nil, err
	}
	e := &encodingStream{Stream: s, applier: p.applier, run: run, row: run.First}
	if e.partition, err = targetencoding.NewPartition(run.Partition.Name); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return e, nil
}

// encodingStream is a stream behind an applier.
type encodingStream struct {
	Stream
	applier   *targetencoding.Applier
	partition targetencoding.Partition
	run       Run
	row       int64 // The row, among the selected ones if there are some, with which the next mini-batch begins.
}

// Next implements Stream.
func (s *encodingStream) Next(ctx context.Context) (*tensor.MiniBatch, error) {
	made, err := s.Stream.Next(ctx)
	if err != nil {
		return nil, err
	}
	first := s.row
	s.row += int64(made.Rows)
	return s.applier.Apply(made, s.partition, func(i int) int64 {
		if s.run.Selected != nil {
			return s.run.Selected.Row(first + int64(i))
		}
		return first + int64(i)
	}), nil
}
