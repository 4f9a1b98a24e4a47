package main

import (
	"context"
	"errors"
	"io"
)

// decoder reads a file block by block, a column of the block at a time. A column is counted among the leaves: label,
// dense, sparse. Slices are valid until the next call for a column. Null scalars are zero: the pipelines fill so.
type decoder interface {
	next(ctx context.Context) (rows int, err error) // io.EOF at the end
	int32s(column int) ([]int32, error)
	float32s(column int) ([]float32, error)
	int64s(column int) ([]int64, error)
	// lists returns ids one behind the other, and writes each row's length.
	lists(column int, lengths []int32) ([]int64, error)
	close() error
}

// goPeer decodes with somebody's reader and computes with loops written in Go.
type goPeer struct {
	data *dataset
	open func(ctx context.Context) (decoder, error)
	ops  operators
	out  *block
}

func (p *goPeer) turn(ctx context.Context, take func(rows int, get func() (*block, error)) error) error {
	d, err := p.open(ctx)
	if err != nil {
		return err
	}
	for {
		rows, err := d.next(ctx)
		if errors.Is(err, io.EOF) {
			return d.close()
		}
		if err == nil {
			err = p.block(d, rows)
		}
		if err == nil {
			err = take(rows, func() (*block, error) { return p.out, nil })
		}
		if err != nil {
			return errors.Join(err, d.close())
		}
	}
}

func (p *goPeer) close() error { return nil }

// block makes the columns of one block.
func (p *goPeer) block(d decoder, rows int) error {
	m := p.data.Model
	if p.out == nil {
		p.out = newBlock(m.Dense, p.data.keys())
	}
	b := p.out
	b.rows = rows
	label, err := d.int32s(0)
	if err != nil {
		return err
	}
	b.label = grow(b.label, rows)
	for i, v := range label {
		b.label[i] = float32(v)
	}
	for i := range m.Dense {
		if err := p.dense(d, i, rows); err != nil {
			return err
		}
	}
	for i := range m.Sparse {
		var ids []int64
		column := 1 + m.Dense + i
		if m.Lists {
			b.lengths[i] = grow(b.lengths[i], rows)
			ids, err = d.lists(column, b.lengths[i])
		} else {
			ids, err = d.int64s(column)
		}
		if err != nil {
			return err
		}
		b.values[i] = grow(b.values[i], len(ids))
		p.ops.ids(b.values[i], ids, b.lengths[i])
	}
	return nil
}

// dense makes a dense feature, and the sparse one generated from it.
func (p *goPeer) dense(d decoder, i, rows int) error {
	m, b := p.data.Model, p.out
	b.dense[i] = grow(b.dense[i], rows)
	var bucket []int32
	if i < m.Generated {
		bucket = grow(b.values[m.Sparse+i], rows)
		b.values[m.Sparse+i] = bucket
	}
	if m.Lists { // whose dense features are floats
		x, err := d.float32s(1 + i)
		if err != nil {
			return err
		}
		p.ops.denseFloat(b.dense[i], x)
		if bucket != nil {
			p.ops.bucketFloat(bucket, x)
		}
		return nil
	}
	x, err := d.int32s(1 + i)
	if err != nil {
		return err
	}
	p.ops.denseInt(b.dense[i], x)
	if bucket != nil {
		p.ops.bucketInt(bucket, x)
	}
	return nil
}
