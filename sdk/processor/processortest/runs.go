package processortest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// Collect runs a run and returns copies of its mini-batches.
func Collect(p processor.Processor, run processor.Run) (out []*tensor.MiniBatch, err error) {
	ctx := context.Background()
	s, err := p.Open(ctx, run)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for {
		m, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, m.Clone())
		m.Release()
	}
}

// RequireSame requires that two runs gave the same mini-batches, bit for bit.
func RequireSame(t require.TestingT, want, got []*tensor.MiniBatch, msg ...any) {
	require.Len(t, got, len(want), msg...)
	for i := range want {
		require.Empty(t, tensor.Diff(want[i], got[i]), append([]any{fmt.Sprintf("mini-batch %d", i)}, msg...)...)
	}
}

// Reference returns the mini-batches that the reference engine makes of a run.
func Reference(t testing.TB, prog *program.Program, schema *tensor.Schema, run processor.Run) []*tensor.MiniBatch {
	ref, err := cpu.NewReference(prog, schema)
	require.NoError(t, err)
	return MiniBatches(t, ref, run)
}

// OnCPU makes a processor of the node's CPU, and closes it after the test.
func OnCPU(t testing.TB, prog *program.Program, schema *tensor.Schema, o processor.Options) processor.Processor {
	p, err := cpu.New(context.Background(), prog, schema, cpu.Options{Processor: o})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	return p
}

// Open opens a generated file as a partition. With direct, the partition lies in memory.
func Open(t testing.TB, data []byte, direct bool) *partition.Partition {
	var o partition.Options
	if direct {
		o.Bytes = data
	}
	p, err := partition.Open(context.Background(), "part-0.parquet", bytes.NewReader(data), int64(len(data)),
		program.Parquet, o)
	require.NoError(t, err)
	return p
}

// Place opens a generated file that lies in extents of a drive.
func Place(t testing.TB, data []byte, extents []partition.Extent) *partition.Partition {
	p, err := partition.Open(context.Background(), "part-0.parquet", bytes.NewReader(data), int64(len(data)),
		program.Parquet, partition.Options{Extents: extents})
	require.NoError(t, err)
	return p
}

// MiniBatches runs a run that must succeed and returns copies of its mini-batches.
func MiniBatches(t testing.TB, p processor.Processor, run processor.Run) []*tensor.MiniBatch {
	out, err := Collect(p, run)
	require.NoError(t, err)
	return out
}

// Join returns one mini-batch that holds the rows of several in their order.
func Join(t require.TestingT, parts []*tensor.MiniBatch) *tensor.MiniBatch {
	rows := 0
	for _, m := range parts {
		rows += m.Rows
	}
	joined, err := tensor.NewCompactor(parts[0].Schema, rows)
	require.NoError(t, err)
	for _, m := range parts {
		all := make([]uint32, m.Rows)
		for i := range all {
			all[i] = uint32(i)
		}
		require.NoError(t, joined.Append(m, all))
	}
	m, err := joined.MiniBatch()
	require.NoError(t, err)
	return m
}
