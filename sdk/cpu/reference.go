package cpu

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	return &referee{prog: prog, schema: schema}, nil
}

type referee struct {
	prog   *program.Program
	schema *tensor.Schema

	mu    sync.Mutex // guards stats
	stats processor.Stats
}

// Open implements processor.Processor.
func (r *referee) Open(ctx context.Context, run processor.Run) (processor.Stream, error) {
	p := run.Partition
	if p == nil || run.Batch < 1 || run.First < 0 || run.Rows < 1 || run.First > p.Rows || run.Rows > p.Rows-run.First {
		return nil, errors.New("reference: a run outside its partition, or without a batch")
	}
	if p.Source != r.prog.Source {
		return nil, fmt.Errorf("reference: %s is %v, the pipeline reads %v", p.Name, p.Source, r.prog.Source)
	}
	reader, err := r.reader(p)
	if err != nil {
		return nil, fmt.Errorf("reference: %s: %w", p.Name, err)
	}
	return &verdict{r: r, ctx: ctx, reader: reader, run: run, row: run.First}, nil
}

func (r *referee) reader(p *partition.Partition) (*reference.Reader, error) {
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

// Stats implements processor.Processor; the reference counts rows and mini-batches only.
func (r *referee) Stats() processor.Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

// Close implements processor.Processor.
func (r *referee) Close() error { return nil }

// verdict is a stream of the reference.
type verdict struct {
	r      *referee
	ctx    context.Context
	reader *reference.Reader
	run    processor.Run
	row    int64
	err    error
}

// Next implements processor.Stream.
func (v *verdict) Next(ctx context.Context) (*tensor.MiniBatch, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if v.err == nil && v.ctx.Err() != nil {
		v.err = context.Cause(v.ctx)
	}
	end := v.run.First + v.run.Rows
	if v.err == nil && v.row >= end {
		v.err = io.EOF
	}
	if v.err != nil {
		return nil, v.err
	}
	rows := int(min(int64(v.run.Batch), end-v.row))
	t, err := v.reader.MiniBatch(v.row, rows)
	if err != nil {
		v.err = v.fault(err)
		return nil, v.err
	}
	m, err := v.r.miniBatch(t)
	if err != nil {
		v.err = err
		return nil, err
	}
	v.row += int64(rows)
	v.r.mu.Lock()
	defer v.r.mu.Unlock()
	v.r.stats.Rows += int64(rows)
	v.r.stats.MiniBatches++
	return m, nil
}

// fault gives an error of the reference the form that the engine's have.
func (v *verdict) fault(err error) error {
	p := v.run.Partition
	e := &partition.DataError{
		Partition: p.Name, RowGroup: -1, Page: -1, Row: v.row, Err: partition.ErrData,
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
		return fmt.Errorf("%s: rows %d to %d: %w", p.Name, v.row, v.row+int64(v.run.Batch)-1, err)
	}
	return e
}

// miniBatch copies the reference's tensors into their types.
func (r *referee) miniBatch(t *reference.Tensors) (*tensor.MiniBatch, error) {
	m, err := tensor.Make(r.schema, t.Rows, len(t.Values))
	if err != nil {
		return nil, err
	}
	copy(m.Label, t.Label)
	copy(m.Dense, t.Dense)
	copy(m.Lengths, t.Lengths)
	copy(m.Weights, t.Weights)
	copy(m.Values64, t.Values)
	if m.Values32 != nil {
		for i, id := range t.Values {
			if id < math.MinInt32 || id > math.MaxInt32 {
				return nil, fmt.Errorf("reference: id %d is no int32", id)
			}
			m.Values32[i] = int32(id)
		}
	}
	return m, nil
}

// Close implements processor.Stream.
func (v *verdict) Close() error {
	if v.err == nil {
		v.err = errors.New("stream is closed")
	}
	return nil
}
