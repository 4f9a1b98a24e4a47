package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// arrowDecoder is arrow-go's record reader.
type arrowDecoder struct {
	reader pqarrow.RecordReader
	record arrow.RecordBatch

	filledInt   []int32
	filledFloat []float32
	filledID    []int64
}

// openArrow reads the footer once and returns the function that opens a decoder for each turn. The file is memory:
// nothing is left to close.
func openArrow(d *dataset) (func(context.Context) (decoder, error), error) {
	f, err := file.NewParquetReader(bytes.NewReader(d.Bytes))
	if err != nil {
		return nil, fmt.Errorf("arrow-go: %w", err)
	}
	fr, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{BatchSize: int64(d.Batch)}, memory.DefaultAllocator)
	if err != nil {
		return nil, fmt.Errorf("arrow-go: %w", err)
	}
	return func(ctx context.Context) (decoder, error) {
		r, err := fr.GetRecordReader(ctx, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("arrow-go: %w", err)
		}
		return &arrowDecoder{reader: r}, nil
	}, nil
}

func (a *arrowDecoder) next(context.Context) (int, error) {
	var err error
	if a.record, err = a.reader.Read(); err != nil {
		return 0, err
	}
	return int(a.record.NumRows()), nil
}

func (a *arrowDecoder) close() error {
	a.reader.Release()
	return nil
}

func (a *arrowDecoder) int32s(column int) ([]int32, error) {
	c, ok := a.record.Column(column).(*array.Int32)
	if !ok {
		return nil, wrongType(column, a.record.Column(column))
	}
	return filled(&a.filledInt, c.Int32Values(), c), nil
}

func (a *arrowDecoder) float32s(column int) ([]float32, error) {
	c, ok := a.record.Column(column).(*array.Float32)
	if !ok {
		return nil, wrongType(column, a.record.Column(column))
	}
	return filled(&a.filledFloat, c.Float32Values(), c), nil
}

func (a *arrowDecoder) int64s(column int) ([]int64, error) {
	c, ok := a.record.Column(column).(*array.Int64)
	if !ok {
		return nil, wrongType(column, a.record.Column(column))
	}
	return filled(&a.filledID, c.Int64Values(), c), nil
}

func (a *arrowDecoder) lists(column int, lengths []int32) ([]int64, error) {
	c, ok := a.record.Column(column).(*array.List)
	if !ok {
		return nil, wrongType(column, a.record.Column(column))
	}
	values, ok := c.ListValues().(*array.Int64)
	if !ok {
		return nil, wrongType(column, c.ListValues())
	}
	if values.NullN() > 0 {
		return nil, fmt.Errorf("column %d: a list with a null id", column)
	}
	for i := range lengths {
		from, to := c.ValueOffsets(i)
		if c.IsNull(i) && from != to { // Arrow allows it; this reader makes none
			return nil, fmt.Errorf("column %d: a null list with ids", column)
		}
		lengths[i] = int32(to - from)
	}
	from, _ := c.ValueOffsets(0)
	_, to := c.ValueOffsets(c.Len() - 1)
	return values.Int64Values()[from:to], nil
}

// filled returns the values with zeroes for nulls; where there are none, the array's own.
func filled[T any](buffer *[]T, values []T, a arrow.Array) []T {
	if a.NullN() == 0 {
		return values
	}
	*buffer = grow(*buffer, len(values))
	out := *buffer
	var zero T
	for i, v := range values {
		if a.IsNull(i) {
			v = zero
		}
		out[i] = v
	}
	return out
}

func wrongType(column int, a arrow.Array) error {
	return fmt.Errorf("column %d is %s: the peers do not know this layout", column, a.DataType())
}
