package cpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// NewReference returns a processor that computes by the definition. It ignores all options; any number of streams may
// be open, each with the column chunks at hand decoded in memory.
func NewReference(prog *program.Program, schema *tensor.Schema) (processor.Processor, error) {
	if err := prog.Validate(); err != nil {
		return nil, fmt.Errorf("start the reference engine: %w", err)
	}
	if err := schema.Validate(); err != nil {
		return nil, fmt.Errorf("start the reference engine: %w", err)
	}
	return &referenceProcessor{prog: prog, schema: schema}, nil
}

type referenceProcessor struct {
	prog   *program.Program
	schema *tensor.Schema

	mu    sync.Mutex // guards stats
	stats processor.Stats
}

// Open implements processor.Processor.
func (r *referenceProcessor) Open(ctx context.Context, run processor.Run) (processor.Stream, error) {
	if err := run.CheckOnDemand(); err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	p := run.Partition
	if p.Source != r.prog.Source {
		return nil, fmt.Errorf("reference: %s is %v, the pipeline reads %v", p.Name, p.Source, r.prog.Source)
	}
	reader, err := r.reader(p)
	if err != nil {
		return nil, fmt.Errorf("reference: %s: %w", p.Name, err)
	}
	return processor.NewOnDemand(ctx, run, func(first int64, rows int) (*tensor.MiniBatch, error) {
		t, err := reader.MiniBatch(first, rows)
		if err != nil {
			return nil, fault(&run, first, rows, err)
		}
		m, err := r.miniBatch(t)
		if err != nil {
			return nil, err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.stats.Rows += int64(rows)
		r.stats.Fragments++
		r.stats.Dropped += reader.Dropped(first, rows)
		return m, nil
	}), nil
}

func (r *referenceProcessor) reader(p *partition.Partition) (*reference.Reader, error) {
	if p.File != nil {
		return reference.NewParquet(r.prog, p.File, p)
	}
	data := p.Bytes()
	if data == nil {
		data = make([]byte, p.Size)
		if n, err := p.ReadAt(data, 0); n < len(data) {
			return nil, fmt.Errorf("read %d bytes: %w", p.Size, err)
		}
	}
	return reference.NewText(r.prog, data)
}

// Stats implements processor.Processor; the reference counts rows, fragments and dropped rows only.
func (r *referenceProcessor) Stats() processor.Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

// Close implements processor.Processor.
func (r *referenceProcessor) Close() error { return nil }

// fault gives an error of the reference the form that the engine's have.
func fault(run *processor.Run, first int64, rows int, err error) error {
	p := run.Partition
	e := &partition.DataError{
		Partition: p.Name, RowGroup: -1, Page: -1, Row: first, Err: partition.ErrData,
		Message: strings.TrimPrefix(err.Error(), "reference: "),
	}
	var page *format.PageError
	switch {
	case errors.As(err, &page):
		e.RowGroup, e.Column, e.Page, e.Offset = page.RowGroup, page.Column, int64(page.Page), page.Offset
		e.Message = page.Err.Error()
		if l, ok := p.File.Leaf(page.Column); ok {
			e.Column = l.Name
		}
		if errors.Is(err, format.ErrUnsupported) || errors.Is(err, format.ErrLimit) {
			e.Err = partition.ErrUnsupported
		}
	case !errors.Is(err, reference.ErrData):
		return fmt.Errorf("%s: rows %d to %d: %w", p.Name, first, first+int64(rows)-1, err)
	}
	return e
}

// miniBatch copies the reference's tensors into their types.
func (r *referenceProcessor) miniBatch(t *reference.Tensors) (*tensor.MiniBatch, error) {
	m, err := tensor.Make(r.schema, t.Rows, len(t.Values))
	if err != nil {
		return nil, err
	}
	copy(m.Label, t.Label)
	copy(m.Dense, t.Dense)
	for i := range m.Dense16 {
		m.Dense16[i] = uint16(math.Float32bits(t.Dense[i]) >> 16) // the reference has rounded it
	}
	copy(m.Lengths, t.Lengths)
	copy(m.Weights, t.Weights)
	if err := processor.SetIDs(m, t.Values); err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	return m, nil
}
