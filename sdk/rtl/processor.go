package rtl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rtl/lane"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// Simulation holds the simulated units of jobs.
type Simulation struct{ lanes *lane.Simulation }

// Report says which units computed, and what this machine's processor did beside them.
type Report = lane.Report

// New returns a simulation whose simulators are kept in the user's cache folder. building, which may be nil, is called
// before a unit's simulator is made, which takes some seconds. The simulation ends with ctx, or with Close.
func New(ctx context.Context, building func(unit string)) (*Simulation, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find a folder for simulators: %w", err)
	}
	lanes, err := lane.New(ctx, lane.Options{Folder: filepath.Join(cache, "millrace", "rtl"), Building: building})
	if err != nil {
		return nil, err
	}
	return &Simulation{lanes: lanes}, nil
}

// Report returns what went through the units so far.
func (s *Simulation) Report() Report { return s.lanes.Report() }

// Close ends the simulators.
func (s *Simulation) Close() error { return s.lanes.Close() }

// NewProcessor returns a processor of a lowered pipeline. The error wraps rtl.ErrNotInRTL and names the step, if the
// program has one that no unit computes.
func (s *Simulation) NewProcessor(prog *program.Program, schema *tensor.Schema) (processor.Processor, error) {
	if err := lane.Check(prog); err != nil {
		return nil, fmt.Errorf("start the engine rtl: %w", err)
	}
	if err := schema.Validate(); err != nil {
		return nil, fmt.Errorf("start the engine rtl: %w", err)
	}
	return &simulatedProcessor{lanes: s.lanes, prog: prog, schema: schema}, nil
}

// simulatedProcessor keeps the reader of the partition that was read last, so that the next split finds the row group
// that is decoded already.
type simulatedProcessor struct {
	lanes  *lane.Simulation
	prog   *program.Program
	schema *tensor.Schema

	mu     sync.Mutex // guards what follows, and is held while a mini-batch is made
	last   *partition.Partition
	reader *lane.Reader
	stats  processor.Stats
}

// Open implements processor.Processor.
func (p *simulatedProcessor) Open(ctx context.Context, run processor.Run) (processor.Stream, error) {
	part := run.Partition
	if part == nil || part.Source == program.Parquet && part.File == nil || run.Selected != nil || run.Batch < 1 ||
		run.First < 0 || run.Rows < 1 || run.First > part.Rows || run.Rows > part.Rows-run.First {
		return nil, errors.New("engine rtl: a run outside its partition, without a batch, or of selected rows")
	}
	s := &stream{p: p, ctx: ctx, run: run, row: run.First}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.readerOf(part); err != nil {
		return nil, fmt.Errorf("engine rtl: %s: %w", part.Name, err)
	}
	return s, nil
}

// readerOf returns the reader of a partition. The caller holds mu.
func (p *simulatedProcessor) readerOf(part *partition.Partition) (*lane.Reader, error) {
	if p.last != part {
		var reader *lane.Reader
		var err error
		switch part.Source {
		case program.CriteoTSV:
			reader, err = p.lanes.NewTextReader(p.prog, lane.TextPartition{Data: part, Index: part.Index,
				Options: part.Text()})
		case program.CriteoBinary:
			reader, err = p.lanes.NewBinaryReader(p.prog, part, part.Rows)
		default:
			reader, err = p.lanes.NewReader(p.prog, part.File, part)
		}
		if err != nil {
			return nil, err
		}
		p.last, p.reader = part, reader
	}
	return p.reader, nil
}

// miniBatch makes the mini-batch of rows of a partition.
func (p *simulatedProcessor) miniBatch(part *partition.Partition, first int64, rows int) (*tensor.MiniBatch, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	reader, err := p.readerOf(part)
	if err != nil {
		return nil, err
	}
	t, err := reader.MiniBatch(first, rows)
	if err != nil {
		return nil, err
	}
	m, err := p.fill(t)
	if err != nil {
		return nil, err
	}
	p.stats.Rows += int64(rows)
	p.stats.MiniBatches++
	return m, nil
}

// fill copies tensors into their types.
func (p *simulatedProcessor) fill(t *lane.Tensors) (*tensor.MiniBatch, error) {
	m, err := tensor.Make(p.schema, t.Rows, len(t.Values))
	if err != nil {
		return nil, err
	}
	copy(m.Label, t.Label)
	copy(m.Dense, t.Dense)
	copy(m.Lengths, t.Lengths)
	copy(m.Values64, t.Values)
	if m.Values32 != nil {
		for i, id := range t.Values {
			if id < math.MinInt32 || id > math.MaxInt32 {
				return nil, fmt.Errorf("id %d is not an int32", id)
			}
			m.Values32[i] = int32(id)
		}
	}
	return m, nil
}

// Stats implements processor.Processor; rows and mini-batches are counted only.
func (p *simulatedProcessor) Stats() processor.Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Close implements processor.Processor. The simulators belong to the simulation.
func (p *simulatedProcessor) Close() error { return nil }

// stream is a stream of mini-batches.
type stream struct {
	p   *simulatedProcessor
	ctx context.Context
	run processor.Run
	row int64
	err error
}

// Next implements processor.Stream.
func (s *stream) Next(ctx context.Context) (*tensor.MiniBatch, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if s.err == nil && s.ctx.Err() != nil {
		s.err = context.Cause(s.ctx)
	}
	end := s.run.First + s.run.Rows
	if s.err == nil && s.row >= end {
		s.err = io.EOF
	}
	if s.err != nil {
		return nil, s.err
	}
	rows := int(min(int64(s.run.Batch), end-s.row))
	m, err := s.p.miniBatch(s.run.Partition, s.row, rows)
	if err != nil {
		s.err = s.fault(err)
		return nil, s.err
	}
	s.row += int64(rows)
	return m, nil
}

// fault gives an error the form that those of other engines have, if the data is at fault.
func (s *stream) fault(err error) error {
	part := s.run.Partition
	e := &partition.DataError{Partition: part.Name, RowGroup: -1, Page: -1, Row: s.row, Err: partition.ErrData,
		Message: err.Error()}
	var page *format.PageError
	switch {
	case errors.Is(err, lane.ErrData):
		return e
	case errors.As(err, &page) && (errors.Is(err, format.ErrCorrupt) || errors.Is(err, format.ErrCRC)):
		e.RowGroup, e.Column, e.Page, e.Offset = page.RowGroup, page.Column, int64(page.Page), page.Offset
		e.Message = page.Err.Error()
		return e
	}
	return fmt.Errorf("engine rtl: %s: rows %d to %d: %w", part.Name, s.row, s.row+int64(s.run.Batch)-1, err)
}

// Close implements processor.Stream.
func (s *stream) Close() error {
	if s.err == nil {
		s.err = errors.New("stream is closed")
	}
	return nil
}
