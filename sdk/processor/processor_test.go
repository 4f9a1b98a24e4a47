package processor_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
)

const rows = 500

// failing is a target whose executions may be made to fail.
type failing struct {
	target.Target
	err atomic.Pointer[error]
}

// Execute implements target.Target.
func (f *failing) Execute(ctx context.Context, x *target.Execution) (target.Outcome, error) {
	if err := f.err.Load(); err != nil {
		return target.Outcome{}, *err
	}
	return f.Target.Execute(ctx, x)
}

// rowNumbers returns a program over binary rows whose dense feature is the first number of a row.
func rowNumbers() (*program.Program, *tensor.Schema) {
	return &program.Program{
		Source: program.CriteoBinary, Label: true, Output: program.Output{Dense: 1},
		Columns: []program.Column{{Name: "int_0", Field: 1, Kind: program.Int64, Sinks: []program.Sink{
			{To: program.ToDense, Ops: []program.Op{convert.Op{To: program.Float32}}},
		}}},
	}, &tensor.Schema{Dense: []string{"int_0"}}
}

// begin starts a processor on a target with memory of its own, over binary rows whose first number is the row's.
func begin(t *testing.T, memory uint64, o processor.Options) (processor.Processor, *failing, processor.Run) {
	t.Helper()
	f := &failing{Target: cpu.NewTarget(cpu.Options{Threads: 2, Processor: processor.Options{SLM: memory}})}
	data := make([]byte, 0, rows*text.BinaryRow)
	for row := range rows {
		fields := make([]byte, text.BinaryRow)
		binary.LittleEndian.PutUint32(fields[4:], uint32(row))
		data = append(data, fields...)
	}
	part, err := partition.Open(t.Context(), "part", bytes.NewReader(data), int64(len(data)), program.CriteoBinary,
		partition.Options{Bytes: data})
	require.NoError(t, err)
	prog, schema := rowNumbers()
	p, err := processor.Start(t.Context(), f, prog, schema, o)
	require.NoError(t, err)
	return p, f, processor.Run{Partition: part, Rows: rows, Batch: 32}
}

// TestRowsComeInOrder takes runs of rows. Every mini-batch but the last must have the batch's rows, and after the
// last the stream stays at its end.
func TestRowsComeInOrder(t *testing.T) {
	p, _, run := begin(t, 1<<20, processor.Options{Streams: 2})
	for _, first := range []int64{0, 1, 499} {
		run.First, run.Rows = first, rows-first
		s, err := p.Open(t.Context(), run)
		require.NoError(t, err)
		row := first
		for {
			m, err := s.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			require.EqualValues(t, min(32, rows-row), m.Rows)
			for _, v := range m.Dense {
				require.InDelta(t, row, v, 0)
				row++
			}
			m.Release()
		}
		assert.EqualValues(t, rows, row)
		_, err = s.Next(t.Context())
		assert.ErrorIs(t, err, io.EOF)
		require.NoError(t, s.Close())
	}
	assert.EqualValues(t, 2*rows, p.Stats().Rows, "500, 499 and 1")
	require.NoError(t, p.Close())
}

// TestWhatIsLentIsNotWrittenAgain keeps every mini-batch to the end. Mini-batches are lent while buffers are free
// and copied afterwards, and no later mini-batch is written over an earlier one.
func TestWhatIsLentIsNotWrittenAgain(t *testing.T) {
	p, _, run := begin(t, 1<<20, processor.Options{Streams: 1})
	s, err := p.Open(t.Context(), run)
	require.NoError(t, err)
	var held []*tensor.MiniBatch
	for {
		m, err := s.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		held = append(held, m)
	}
	row := 0
	for _, m := range held {
		for _, v := range m.Dense {
			require.InDelta(t, row, v, 0)
			row++
		}
	}
	assert.Equal(t, rows, row)
	stats := p.Stats()
	assert.Positive(t, stats.BytesLent)
	assert.Positive(t, stats.BytesFetched)
	for _, m := range held {
		m.Release()
	}
	require.NoError(t, s.Close())
	require.NoError(t, p.Close())
}

// TestAFailedExecutionEndsItsStream checks that a failed execution ends its stream and no other. The error stays,
// and the memory of the stream is free for the next stream.
func TestAFailedExecutionEndsItsStream(t *testing.T) {
	p, f, run := begin(t, 1<<20, processor.Options{Streams: 1, Sync: true})
	s, err := p.Open(t.Context(), run)
	require.NoError(t, err)
	m, err := s.Next(t.Context())
	require.NoError(t, err)
	m.Release()
	broken := errors.New("the drive is gone")
	f.err.Store(&broken)
	_, err = s.Next(t.Context())
	require.ErrorIs(t, err, broken)
	f.err.Store(nil)
	_, err = s.Next(t.Context())
	require.ErrorIs(t, err, broken, "a stream that failed does not go on")
	require.NoError(t, s.Close())
	s, err = p.Open(t.Context(), run)
	require.NoError(t, err)
	m, err = s.Next(t.Context())
	require.NoError(t, err)
	assert.InDelta(t, 0, m.Dense[0], 0)
	m.Release()
	require.NoError(t, s.Close())
	require.NoError(t, p.Close())
}

// TestMemoryThatNoStreamCanUse checks that too little memory is an error before any stream, which says how much
// memory suffices for all streams.
func TestMemoryThatNoStreamCanUse(t *testing.T) {
	tight := cpu.NewTarget(cpu.Options{Threads: 1, Processor: processor.Options{SLM: 1 << 10}})
	prog, schema := rowNumbers()
	_, err := processor.Start(t.Context(), tight, prog, schema, processor.Options{Streams: 3})
	var short *slicer.MemoryError
	require.ErrorAs(t, err, &short)
	assert.Equal(t, 3, short.Streams)
	assert.EqualValues(t, 1<<10, short.Have)
	assert.Greater(t, short.Need, short.Have)
}

func TestContain(t *testing.T) {
	contained := func(f func() error) (err error) {
		defer processor.Contain("a test", &err)
		return f()
	}
	require.NoError(t, contained(func() error { return nil }))
	require.ErrorIs(t, contained(func() error { return context.Canceled }), context.Canceled)
	err := contained(func() error { panic("a bug") })
	require.ErrorIs(t, err, processor.ErrPanic)
	assert.EqualError(t, err, "a test: the program panicked: a bug")
	outOfRange := func() error { var none []int; return errors.New(string(rune(none[len(none)]))) }
	require.ErrorIs(t, contained(outOfRange), processor.ErrPanic)
}
