package arrowipc

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/millrace/millrace/sdk/tensor"
)

// Reader reads mini-batches from an IPC file. The file must be trusted: see the package comment.
type Reader struct {
	schema *tensor.Schema
	r      *ipc.FileReader
	close  func() error
}

// NewReader reads the footer and the schema. r must stay open until Close, which does not close it.
func NewReader(r ipc.ReadAtSeeker) (rd *Reader, err error) {
	defer recoverPanic(&err)
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("open arrow file: %w", err)
	}
	// A message is not larger than its file. No lower bound is possible, since mini-batches of 1 GiB are legitimate.
	f, err := ipc.NewFileReader(r, ipc.WithBodySizeLimit(size), ipc.WithMetadataSizeLimit(size))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	s, err := parseSchema(f.Schema())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Reader{schema: s, r: f}, nil
}

// Open opens a file; Close closes it.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open arrow file: %w", err)
	}
	r, err := NewReader(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	r.close = f.Close
	return r, nil
}

// Schema returns the mini-batches' schema.
func (r *Reader) Schema() *tensor.Schema { return r.schema }

// Len returns the number of mini-batches.
func (r *Reader) Len() int { return r.r.NumRecords() }

// MiniBatch reads mini-batch i of the file, counted from 0. Release it when done.
func (r *Reader) MiniBatch(i int) (m *tensor.MiniBatch, err error) {
	defer recoverPanic(&err)
	rec, err := r.r.RecordBatchAt(i)
	if err != nil {
		return nil, fmt.Errorf("%w: mini-batch %d: %w", ErrFormat, i, err)
	}
	m, err = r.miniBatch(rec)
	if err != nil {
		rec.Release()
		return nil, fmt.Errorf("%w: mini-batch %d: %w", ErrFormat, i, err)
	}
	return m, nil
}

// All yields the mini-batches in order, until an error. The consumer releases them.
func (r *Reader) All() iter.Seq2[*tensor.MiniBatch, error] {
	return func(yield func(*tensor.MiniBatch, error) bool) {
		for i := range r.Len() {
			m, err := r.MiniBatch(i)
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// miniBatch makes a mini-batch of a record batch.
func (r *Reader) miniBatch(rec arrow.RecordBatch) (*tensor.MiniBatch, error) {
	if rec.NumRows() != 1 {
		return nil, fmt.Errorf("%d rows, want 1", rec.NumRows())
	}
	meta := rec.(arrow.RecordBatchWithMetadata).Metadata()
	text, _ := meta.GetValue(metaRows)
	rows, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", metaRows, err)
	}
	m := tensor.New(r.schema, rows, rec.Release)
	text, _ = meta.GetValue(metaName)
	if m.Name, err = tensor.ParseName(text); err != nil {
		return nil, err
	}
	for i, f := range rec.Schema().Fields() {
		list, ok := rec.Column(i).(*array.LargeList)
		if !ok || list.NullN() != 0 {
			return nil, fmt.Errorf("column %s has a null", f.Name)
		}
		lo, hi := list.ValueOffsets(0)
		values := list.ListValues()
		if lo < 0 || hi < lo || hi > int64(values.Len()) || values.NullN() != 0 {
			return nil, fmt.Errorf("column %s: the list [%d, %d) of %d values", f.Name, lo, hi, values.Len())
		}
		switch v := values.(type) {
		case *array.Float32:
			list := v.Float32Values()[lo:hi]
			switch f.Name {
			case tensor.TensorDense:
				m.Dense = list
			case tensor.TensorLabel:
				m.Label = list
			case tensor.TensorWeights:
				m.Weights = list
			}
		case *array.Int32:
			if f.Name == tensor.TensorLengths {
				m.Lengths = v.Int32Values()[lo:hi]
			} else {
				m.Values32 = v.Int32Values()[lo:hi]
			}
		case *array.Int64:
			m.Values64 = v.Int64Values()[lo:hi]
		case *array.Uint16:
			m.Dense16 = v.Uint16Values()[lo:hi]
		}
	}
	return m, m.Validate()
}

// Close ends reading. Mini-batches that were read stay valid until released.
func (r *Reader) Close() error {
	err := r.r.Close()
	if r.close != nil {
		err = errors.Join(err, r.close())
		r.close = nil
	}
	if err != nil {
		return fmt.Errorf("close arrow file: %w", err)
	}
	return nil
}

// recoverPanic turns a panic of arrow-go on a damaged file into an error.
func recoverPanic(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", ErrFormat, r)
	}
}
