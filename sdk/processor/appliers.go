package processor

import (
	"context"
	"errors"

	"github.com/millrace/millrace/sdk/targetencoding"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// Appliers finish the mini-batches of a processor on this host, in Next, while the engine makes the mini-batch that
// follows. An applier that is nil does nothing.
type Appliers struct {
	Encodings *targetencoding.Applier // Encodings takes the mini-batches of the processor.
	Lookups   *vocabulary.Applier     // Lookups takes what Encodings returns.
}

// WithAppliers returns a processor whose mini-batches went through appliers.
func WithAppliers(p Processor, a Appliers) Processor {
	if a == (Appliers{}) {
		return p
	}
	return &applyingProcessor{Processor: p, appliers: a}
}

type applyingProcessor struct {
	Processor
	appliers Appliers
}

// Open implements Processor.
func (p *applyingProcessor) Open(ctx context.Context, run Run) (Stream, error) {
	s, err := p.Processor.Open(ctx, run)
	if err != nil {
		return nil, err
	}
	a := &applyingStream{Stream: s, appliers: p.appliers, run: run, row: run.First}
	if a.partition, err = targetencoding.NewPartition(run.Partition.Name); err != nil && a.appliers.Encodings != nil {
		return nil, errors.Join(err, s.Close())
	}
	return a, nil
}

// applyingStream is a stream behind appliers.
type applyingStream struct {
	Stream
	appliers  Appliers
	partition targetencoding.Partition
	run       Run
	row       int64 // The next mini-batch begins with this row of the partition, or of its selected rows.
	err       error // A lookup failed with it and ended the stream.
}

// Next implements Stream.
func (s *applyingStream) Next(ctx context.Context) (*tensor.MiniBatch, error) {
	if s.err != nil {
		return nil, s.err
	}
	mb, err := s.Stream.Next(ctx)
	if err != nil {
		return nil, err
	}
	first, rows := s.row, mb.Rows
	if a := s.appliers.Encodings; a != nil {
		mb = a.Apply(mb, s.partition, func(i int) int64 { return s.rowOfPartition(first + int64(i)) })
	}
	if a := s.appliers.Lookups; a != nil {
		p := s.run.Partition
		mb, err = a.Apply(mb, vocabulary.Rows{Partition: p.Name, Digest: p.Digest(), First: first})
		if err != nil {
			var unknown *vocabulary.UnknownError
			if errors.As(err, &unknown) {
				unknown.Partition, unknown.Row = p.Name, s.rowOfPartition(first+unknown.Row)
			}
			s.err = err
			return nil, err
		}
	}
	s.row += int64(rows)
	return mb, nil
}

// rowOfPartition returns the number in the partition of a row of the stream.
func (s *applyingStream) rowOfPartition(row int64) int64 {
	if s.run.Selected != nil {
		return s.run.Selected.Row(row)
	}
	return row
}
