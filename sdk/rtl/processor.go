package rtl

import (
	"context"
	"errors"
	"fmt"
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
	if err := run.CheckOnDemand(); err != nil {
		return nil, fmt.Errorf("engine rtl: %w", err)
	}
	part := run.Partition
	if part.Source == program.Parquet && part.File == nil {
		return nil, fmt.Errorf("engine rtl: %s: the footer of the partition was not read", part.Name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.readerOf(part); err != nil {
		return nil, fmt.Errorf("engine rtl: %s: %w", part.Name, err)
	}
	return processor.NewOnDemand(ctx, run, func(first int64, rows int) (*tensor.MiniBatch, error) {
		m, err := p.miniBatch(part, first, rows)
		if err != nil {
			return nil, fault(&run, first, rows, err)
		}
		return m, nil
	}), nil
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
	p.stats.Fragments++
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
	return m, processor.SetIDs(m, t.Values)
}

// Stats implements processor.Processor; rows and mini-batches are counted only.
func (p *simulatedProcessor) Stats() processor.Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Close implements processor.Processor. The simulators belong to the simulation.
func (p *simulatedProcessor) Close() error { return nil }

// fault gives an error the form that those of other engines have, if the data is at fault.
func fault(run *processor.Run, first int64, rows int, err error) error {
	part := run.Partition
	e := &partition.DataError{Partition: part.Name, RowGroup: -1, Page: -1, Row: first, Err: partition.ErrData,
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
	return fmt.Errorf("engine rtl: %s: rows %d to %d: %w", part.Name, first, first+int64(rows)-1, err)
}
