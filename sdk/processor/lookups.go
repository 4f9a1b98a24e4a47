package processor

import (
	"context"
	"errors"

	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// WithLookups returns a processor whose mini-batches went through an applier of vocabularies, which takes those of p.
// Ids are looked up by this host, in Next, while the engine makes the mini-batch that follows.
func WithLookups(p Processor, applier *vocabulary.Applier) Processor {
	return &lookupProcessor{Processor: p, applier: applier}
}

type lookupProcessor struct {
	Processor
	applier *vocabulary.Applier
}

// Open implements Processor.
func (p *lookupProcessor) Open(ctx context.Context, run Run) (Stream, error) {
	s, err := p.Processor.Open(ctx, run)
	if err != nil {
		return nil, err
	}
	return &lookupStream{Stream: s, applier: p.applier, run: run, row: run.First}, nil
}

// lookupStream is a stream behind an applier.
type lookupStream struct {
	Stream
	applier *vocabulary.Applier
	run     Run
	row     int64 // The row, among the selected ones if there are some, with which the next mini-batch begins.
	err     error // The failed lookup that ended the stream.
}

// Next implements Stream.
func (s *lookupStream) Next(ctx context.Context) (*tensor.MiniBatch, error) {
	if s.err != nil {
		return nil, s.err
	}
	made, err := s.Stream.Next(ctx)
	if err != nil {
		return nil, err
	}
	rows := made.Rows
	mb, err := s.applier.Apply(made, vocabulary.Rows{Partition: s.run.Partition.Name, Digest: s.run.Partition.Digest(),
		First: s.row})
	if err != nil {
		var unknown *vocabulary.UnknownError
		if errors.As(err, &unknown) {
			unknown.Partition, unknown.Row = s.run.Partition.Name, unknown.Row+s.row
			if s.run.Selected != nil {
				unknown.Row = s.run.Selected.Row(unknown.Row)
			}
		}
		s.err = err
		return nil, err
	}
	s.row += int64(rows)
	return mb, nil
}
