package processor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/tensor"
)

// WithSelections returns a processor that also opens runs of selected rows (Run.Selected). p makes the mini-batches of
// all rows from the first selected row of the run to its last, and this host moves the selected rows of several into
// one, in Next. So a mini-batch holds the same bytes whichever engine made its rows, and memory holds one mini-batch of
// all rows, and one of selected rows, of each stream. Row groups without selected rows are not read where the run
// crosses their border.
func WithSelections(p Processor) Processor { return &selectingProcessor{Processor: p} }

type selectingProcessor struct {
	Processor
	// Rows and fragments that streams handed on, less those that they took from p.
	rows, fragments atomic.Int64
}

// Open implements Processor.
func (p *selectingProcessor) Open(ctx context.Context, run Run) (Stream, error) {
	if run.Selected == nil {
		return p.Processor.Open(ctx, run)
	}
	switch {
	case run.Partition == nil:
		return nil, errors.New("open a stream: no partition")
	case run.Selected.Tested() != run.Partition.Rows:
		return nil, fmt.Errorf("%s: open a stream: a selection of %d rows, and the partition has %d", run.Partition.Name,
			run.Selected.Tested(), run.Partition.Rows)
	case run.First < 0 || run.Rows < 1 || run.First > run.Selected.Passing() ||
		run.Rows > run.Selected.Passing()-run.First:
		return nil, fmt.Errorf("%s: open a stream: rows %d+%d of %d selected ones", run.Partition.Name, run.First, run.Rows,
			run.Selected.Passing())
	}
	if err := run.checkBatches(); err != nil {
		return nil, err
	}
	s := &selectedStream{processor: p, run: run, number: run.First,
		last:       run.Selected.Row(run.First + run.Rows - 1),
		openSource: func(run Run) (Stream, error) { return p.Processor.Open(ctx, run) }}
	return s, s.openAt(run.Selected.Row(run.First))
}

// Stats implements Processor. Rows and fragments are those that streams handed on.
func (p *selectingProcessor) Stats() Stats {
	s := p.Processor.Stats()
	s.Rows += p.rows.Load()
	s.Fragments += p.fragments.Load()
	return s
}

// selectedStream makes mini-batches of selected rows.
type selectedStream struct {
	processor  *selectingProcessor
	run        Run
	openSource func(Run) (Stream, error)

	number int64 // The selected row with which the next mini-batch begins.
	last   int64 // row of the partition that is the run's last selected one

	source Stream
	opened Run   // The rows of the partition that the source was opened with.
	row    int64 // The row of the partition with which the source's next mini-batch begins.

	whole  *tensor.MiniBatch // The source's mini-batch that has rows to take; nil: none.
	chosen []uint32          // The selected rows of whole that were not taken.
	rows   []uint32          // memory of chosen

	making *tensor.Compactor // the mini-batch in the making; nil: none was begun
	err    error             // What ended the stream.
}

// openAt opens the source at a row of the partition.
func (s *selectedStream) openAt(row int64) error {
	opened := Run{Partition: s.run.Partition, First: row, Rows: s.last - row + 1, Batch: s.run.Batch,
		FirstBatch: s.run.firstBatchAt(s.number)}
	source, err := s.openSource(opened)
	if err != nil {
		return err
	}
	s.source, s.opened, s.row = source, opened, row
	return nil
}

// Next implements Stream.
func (s *selectedStream) Next(ctx context.Context) (*tensor.MiniBatch, error) {
	if s.err != nil {
		return nil, s.err
	}
	want := s.run.batchAt(s.number)
	if want == 0 {
		return nil, io.EOF
	}
	for {
		if len(s.chosen) == 0 {
			if err := s.takeWhole(ctx); err != nil {
				return nil, err
			}
		}
		if s.making == nil {
			if len(s.chosen) == want && want == s.whole.Rows { // every row, as it came
				mb := s.whole
				s.whole, s.chosen = nil, nil
				return s.handOn(mb), nil
			}
			var err error
			if s.making, err = tensor.NewCompactor(s.whole.Schema, want); err != nil {
				return nil, s.fail(err)
			}
		}
		n := min(len(s.chosen), s.making.Missing())
		if err := s.making.Append(s.whole, s.chosen[:n]); err != nil {
			return nil, s.fail(err)
		}
		if s.chosen = s.chosen[n:]; len(s.chosen) == 0 {
			s.whole.Release()
			s.whole = nil
		}
		if s.making.Missing() == 0 {
			mb, err := s.making.MiniBatch()
			if err != nil {
				return nil, s.fail(err)
			}
			s.making = nil
			return s.handOn(mb), nil
		}
	}
}

// handOn counts a mini-batch that the consumer gets.
func (s *selectedStream) handOn(mb *tensor.MiniBatch) *tensor.MiniBatch {
	s.number += int64(mb.Rows)
	s.processor.rows.Add(int64(mb.Rows))
	s.processor.fragments.Add(1)
	return mb
}

// fail ends the stream with an error.
func (s *selectedStream) fail(err error) error {
	s.err = err
	return err
}

// takeWhole takes mini-batches from the source until one has selected rows. If ctx ends first, the stream can go on.
func (s *selectedStream) takeWhole(ctx context.Context) error {
	for len(s.chosen) == 0 {
		taken := s.number // number of the selected row that is wanted next
		if s.making != nil {
			taken = s.number + int64(s.run.batchAt(s.number)-s.making.Missing())
		}
		if wanted := s.run.Selected.Row(taken); s.skips(wanted) {
			if err := errors.Join(s.source.Close(), s.openAt(wanted)); err != nil {
				return s.fail(err)
			}
		}
		mb, err := s.source.Next(ctx)
		if errors.Is(err, io.EOF) {
			return s.fail(fmt.Errorf("%s: the rows ended at row %d, before row %d", s.run.Partition.Name, s.row, s.last))
		}
		if err != nil {
			return err
		}
		s.processor.rows.Add(-int64(mb.Rows))
		s.processor.fragments.Add(-1)
		if want := s.opened.batchAt(s.row); mb.Rows != want {
			mb.Release()
			return s.fail(fmt.Errorf("%s: a mini-batch of %d rows from row %d on, want %d", s.run.Partition.Name, mb.Rows,
				s.row, want))
		}
		s.rows = s.run.Selected.AppendPassing(s.rows[:0], s.row, mb.Rows)
		s.row += int64(mb.Rows)
		if s.chosen = s.rows; len(s.chosen) == 0 {
			mb.Release()
			continue
		}
		s.whole = mb
	}
	return nil
}

// skips reports whether the source is better opened again at a row than read up to it: at least two mini-batches lie
// before the row, and a row group begins there, so that bytes are left unread. Inside a row group of Parquet, a source
// that begins at the row may read the group's first pages again. Rows of text have places of their own.
func (s *selectedStream) skips(row int64) bool {
	if row-s.row < 2*int64(s.run.Batch) {
		return false
	}
	p := s.run.Partition
	return p.Source != program.Parquet || p.RowGroupOf(row) != p.RowGroupOf(s.row)
}

// Close implements Stream.
func (s *selectedStream) Close() error {
	if s.whole != nil {
		s.whole.Release()
		s.whole, s.chosen = nil, nil
	}
	if s.err == nil {
		s.err = errStreamClosed
	}
	return s.source.Close()
}
