package processor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/millrace/millrace/sdk/tensor"
)

// onDemand is a Stream that makes a mini-batch when it is asked for it, and nothing ahead.
type onDemand struct {
	ctx  context.Context
	run  Run
	make func(first int64, rows int) (*tensor.MiniBatch, error)
	row  int64
	err  error
}

// CheckOnDemand returns an error for a run that NewOnDemand does not take. It wraps ErrFirstBatch if that is out of
// range.
func (r *Run) CheckOnDemand() error {
	if p := r.Partition; p == nil || r.Selected != nil || r.First < 0 || r.Rows < 1 || r.First > p.Rows ||
		r.Rows > p.Rows-r.First {
		return errors.New("a run outside its partition, or of selected rows")
	}
	return r.checkBatches()
}

// NewOnDemand returns the stream of a run on an engine that computes nothing ahead: compute makes the mini-batch of
// some rows of the partition, from first on, when it is requested. The stream ends with ctx, and with the first error
// of compute.
func NewOnDemand(ctx context.Context, run Run, compute func(first int64, rows int) (*tensor.MiniBatch, error)) Stream {
	return &onDemand{ctx: ctx, run: run, make: compute, row: run.First}
}

// Next implements Stream.
func (s *onDemand) Next(ctx context.Context) (*tensor.MiniBatch, error) {
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
	rows := s.run.batchAt(s.row)
	m, err := s.make(s.row, rows)
	if err != nil {
		s.err = err
		return nil, err
	}
	s.row += int64(rows)
	return m, nil
}

// Close implements Stream.
func (s *onDemand) Close() error {
	if s.err == nil {
		s.err = errors.New("stream is closed")
	}
	return nil
}

// SetIDs copies ids into the type that a mini-batch has them in.
func SetIDs(m *tensor.MiniBatch, ids []int64) error {
	copy(m.Values64, ids)
	for i := range m.Values32 {
		if ids[i] < math.MinInt32 || ids[i] > math.MaxInt32 {
			return fmt.Errorf("id %d is not an int32", ids[i])
		}
		m.Values32[i] = int32(ids[i])
	}
	return nil
}
