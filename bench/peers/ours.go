package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/partition/schema"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// ours is Millrace's cpu engine with one thread. It makes train-ready mini-batches, which is more than the columns
// asked of peers.
type ours struct {
	data      *dataset
	partition *partition.Partition
	processor processor.Processor
}

// startOurs opens ours over a dataset, with a thread for each of its files.
func startOurs(ctx context.Context, d *dataset) (contender, error) {
	if d.Parts != nil { // the parts learn the parameters one by one, the whole with them
		p, err := open(ctx, d)
		if err != nil {
			return nil, err
		}
		prog, _, err := lowerModel(p, d)
		if err != nil {
			return nil, err
		}
		if err := d.learn(prog); err != nil {
			return nil, err
		}
	}
	return link(func(ctx context.Context, d *dataset) (runner, error) { return openOurs(ctx, d) })(ctx, d)
}

func openOurs(ctx context.Context, d *dataset) (*ours, error) {
	o := &ours{data: d}
	var err error
	if o.partition, err = open(ctx, d); err != nil {
		return nil, err
	}
	prog, schema, err := lowerModel(o.partition, d)
	if err != nil {
		return nil, err
	}
	if err := d.learn(prog); err != nil {
		return nil, err
	}
	o.processor, err = cpu.New(ctx, prog, schema, cpu.Options{Threads: 1})
	return o, err
}

func open(ctx context.Context, d *dataset) (*partition.Partition, error) {
	return partition.Open(ctx, filepath.Base(d.Path), bytes.NewReader(d.Bytes), int64(len(d.Bytes)), program.Parquet,
		partition.Options{Bytes: d.Bytes})
}

// lowerModel makes the program of the model's pipeline for the file's columns.
func lowerModel(p *partition.Partition, d *dataset) (*program.Program, *tensor.Schema, error) {
	spec, err := pipeline.Named(d.Model.Name)
	if err != nil {
		return nil, nil, err
	}
	return lower(p, spec)
}

// lower makes a pipeline's program for the file's columns.
func lower(p *partition.Partition, spec *pipeline.Spec) (*program.Program, *tensor.Schema, error) {
	columns, _ := schema.Columns(p, text.Options{})
	resolved, err := resolve.Pipeline(spec, columns)
	if err != nil {
		return nil, nil, err
	}
	return lowering.Lower(resolved)
}

func (o *ours) turn(ctx context.Context, take func(rows int, get func() (*block, error)) error) error {
	s, err := o.processor.Open(ctx, processor.Run{Partition: o.partition, Rows: o.partition.Rows, Batch: o.data.Batch})
	if err != nil {
		return err
	}
	for {
		mb, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return s.Close()
		}
		if err != nil {
			return errors.Join(err, s.Close())
		}
		err = take(mb.Rows, func() (*block, error) { return blockOf(mb), nil })
		mb.Release()
		if err != nil {
			return errors.Join(err, s.Close())
		}
	}
}

func (o *ours) close() error { return o.processor.Close() }

// blockOf cuts a mini-batch into columns.
func blockOf(m *tensor.MiniBatch) *block {
	dense, keys := len(m.Schema.Dense), len(m.Schema.Keys)
	b := newBlock(dense, keys)
	b.rows, b.label = m.Rows, m.Label
	for i := range dense {
		b.dense[i] = make([]float32, m.Rows)
		for row := range m.Rows {
			b.dense[i][row] = m.Dense[row*dense+i]
		}
	}
	offsets := m.OffsetPerKey()
	for i := range keys {
		b.values[i] = m.Values32[offsets[i]:offsets[i+1]]
		if m.Lengths != nil {
			b.lengths[i] = m.Lengths[i*m.Rows : (i+1)*m.Rows]
		}
	}
	return b
}
