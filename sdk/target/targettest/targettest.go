// Package targettest holds the contract of a target as tests, which every implementation of target.Target runs.
//
// # Overview
//
// [Run] opens targets and checks what package target says of their methods: limits, memory, views, and executions that
// are refused. Then it makes the mini-batches of a small partition on a target, and compares them with what the
// partition's rows say. A test of a new target has one line:
//
//	targettest.Run(t, func(t *testing.T, data []byte) targettest.Opened { ... })
//
// # Concurrency
//
// Run opens one target a test, and uses it from several goroutines as a processor does: none writes what another reads.
//
// # Errors
//
// A target that breaks the contract fails the test that is named for the broken sentence.
//
// # Debugging
//
// Run one of the tests: go test -run 'TestConformance/memory'.
package targettest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
)

// Opened is a target with at least 1 MiB of memory, and where it finds the bytes of the partition.
type Opened struct {
	Target  target.Target
	Options partition.Options // extents, or the bytes themselves
}

// Run runs all tests. open opens a target to which data is one partition; the tests close it.
func Run(t *testing.T, open func(t *testing.T, data []byte) Opened) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Opened, []byte)
	}{
		{"limits", checkLimits},
		{"memory", checkMemory},
		{"views", checkViews},
		{"memory is used by several goroutines", checkConcurrency},
		{"a slice that is none is refused", checkBadSlice},
		{"mini-batches", checkMiniBatches},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := binaryRows(rows)
			c.test(t, open(t, data), data)
		})
	}
}

// grain is the least boundary at which a processor reads and writes a target's memory.
const grain = 64

// checkLimits: a target names its engine and has memory, and its moves have whole blocks of a power of two.
func checkLimits(t *testing.T, o Opened, _ []byte) {
	limits := o.Target.Limits()
	assert.NotEmpty(t, limits.Engine)
	assert.GreaterOrEqual(t, limits.Memory, uint64(1<<20))
	assert.LessOrEqual(t, bits.OnesCount64(limits.Block), 1, "a block of %d bytes", limits.Block)
	assert.GreaterOrEqual(t, limits.Moves, 0)
	assert.GreaterOrEqual(t, limits.Tasks, 0)
	assert.Equal(t, limits, o.Target.Limits(), "limits do not change")
	require.NoError(t, o.Target.Close())
}

// checkMemory stores and loads at both ends of the memory, and beyond.
func checkMemory(t *testing.T, o Opened, _ []byte) {
	ctx, size := t.Context(), o.Target.Limits().Memory
	for _, at := range []uint64{0, grain, 3 * grain, size / 2 &^ (grain - 1), size - 4*grain} {
		b := bytes.Repeat([]byte{byte(at / grain), 1, 2, 3}, grain)
		require.NoError(t, o.Target.Store(ctx, at, b), "store at %d of %d", at, size)
		got := make([]byte, len(b))
		require.NoError(t, o.Target.Load(ctx, at, got), "load at %d of %d", at, size)
		assert.Equal(t, b, got, "at %d", at)
	}
	part := make([]byte, grain)
	require.NoError(t, o.Target.Load(ctx, 4*grain, part))
	assert.Equal(t, bytes.Repeat([]byte{3, 1, 2, 3}, grain/4), part, "a part of what was stored")
	for _, at := range []uint64{size - grain, size, size + grain, 1<<63 + grain, 1<<64 - 2*grain} {
		assert.Error(t, o.Target.Store(ctx, at, make([]byte, 2*grain)), "store at %d of %d", at, size)
		assert.Error(t, o.Target.Load(ctx, at, make([]byte, 2*grain)), "load at %d of %d", at, size)
	}
	require.NoError(t, o.Target.Close())
}

// checkViews: a view is the memory, not a copy, and no view reaches beyond the memory.
func checkViews(t *testing.T, o Opened, _ []byte) {
	ctx, size := t.Context(), o.Target.Limits().Memory
	view, mapped := o.Target.View(target.Span{Addr: grain, Len: 2 * grain})
	if mapped {
		require.Len(t, view, 2*grain)
		b := bytes.Repeat([]byte("view"), grain/2)
		require.NoError(t, o.Target.Store(ctx, grain, b))
		assert.Equal(t, b, view)
	}
	for _, s := range []target.Span{
		{Addr: size, Len: grain}, {Addr: size - grain, Len: 2 * grain}, {Addr: grain, Len: 1<<64 - grain},
		{Addr: 1<<64 - grain, Len: 2 * grain},
	} {
		_, ok := o.Target.View(s)
		assert.False(t, ok, "a view of %d bytes at %d, in a memory of %d bytes", s.Len, s.Addr, size)
	}
	require.NoError(t, o.Target.Close())
}

// checkConcurrency has goroutines that use memory of their own.
func checkConcurrency(t *testing.T, o Opened, _ []byte) {
	var all sync.WaitGroup
	for g := range uint64(8) {
		all.Go(func() {
			own, got := bytes.Repeat([]byte{byte(g)}, 16*grain), make([]byte, 16*grain)
			for range 20 {
				assert.NoError(t, o.Target.Store(t.Context(), g*16*grain, own))
				assert.NoError(t, o.Target.Load(t.Context(), g*16*grain, got))
				assert.Equal(t, own, got)
			}
		})
	}
	all.Wait()
	require.NoError(t, o.Target.Close())
}

// checkBadSlice executes arguments that are no slice: the engine says so in the outcome, or the command fails.
func checkBadSlice(t *testing.T, o Opened, data []byte) {
	x := target.Execution{Partition: openPartition(t, data, o.Options), Args: []byte("this is no slice")}
	x.Ranges[target.RangeProgram] = target.Span{Len: grain}
	x.Ranges[target.RangeOutput] = target.Span{Addr: 1024, Len: 1024}
	x.Ranges[target.RangeResult] = target.Span{Addr: 4096, Len: 4096}
	outcome, err := o.Target.Execute(t.Context(), &x)
	if err == nil {
		assert.GreaterOrEqual(t, outcome.State, program.BadSlice, "%v", outcome.State)
	}
	require.NoError(t, o.Target.Close())
}

const (
	rows      = 1000
	batchRows = 64
	buckets   = 1 << 20
)

// checkMiniBatches has a processor make mini-batches on the target, and stop at the end of a context.
func checkMiniBatches(t *testing.T, o Opened, data []byte) {
	part := openPartition(t, data, o.Options)
	prog, schema := pipeline()
	p, err := processor.Start(t.Context(), o.Target, prog, schema, processor.Options{Streams: 2})
	require.NoError(t, err)
	run := processor.Run{Partition: part, First: 3, Rows: part.Rows - 3, Batch: batchRows}
	s, err := p.Open(t.Context(), run)
	require.NoError(t, err)
	row := 3
	for {
		m, err := s.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.NoError(t, m.Validate())
		for k := range m.Rows {
			assert.InDelta(t, field(row+k, 1), m.Dense[k], 0, "row %d", row+k)
			assert.EqualValues(t, field(row+k, 14)%buckets, m.Values64[k], "row %d", row+k)
		}
		row += m.Rows
		m.Release()
	}
	assert.Equal(t, rows, row)
	require.NoError(t, s.Close())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err = p.Open(t.Context(), run)
	require.NoError(t, err)
	for range 100 { // also when the mini-batch has become ready meanwhile
		_, err = s.Next(ctx)
		require.ErrorIs(t, err, context.Canceled)
		runtime.Gosched()
	}
	m, err := s.Next(t.Context())
	require.NoError(t, err)
	assert.InDelta(t, field(int(run.First), 1), m.Dense[0], 0, "no mini-batch was lost")
	m.Release()
	require.NoError(t, s.Close())
	require.NoError(t, p.Close())
}

// binaryRows returns n rows of Criteo's binary form; field says what they hold.
func binaryRows(n int) (b []byte) {
	for row := range n {
		for f := range text.BinaryRow / 4 {
			b = binary.LittleEndian.AppendUint32(b, field(row, f))
		}
	}
	return b
}

// field returns the number in a field of a row.
func field(row, f int) uint32 { return uint32(row*40 + f) }

func openPartition(t *testing.T, data []byte, o partition.Options) *partition.Partition {
	t.Helper()
	p, err := partition.Open(t.Context(), "rows.bin", bytes.NewReader(data), int64(len(data)), program.CriteoBinary, o)
	require.NoError(t, err)
	return p
}

// pipeline is a program over binary rows: int_0 as it is, and the remainder of cat_0.
func pipeline() (*program.Program, *tensor.Schema) {
	return &program.Program{
			Source: program.CriteoBinary, Label: true, Output: program.Output{Dense: 1, Keys: 1, Fixed: true},
			Columns: []program.Column{
				{Name: "cat_0", Field: 14, Kind: program.Int64, Sinks: []program.Sink{
					{To: program.ToSparse, Ops: []program.Op{positivemodulus.Op{M: buckets}}}}},
				{Name: "int_0", Field: 1, Kind: program.Int64, Sinks: []program.Sink{
					{To: program.ToDense, Ops: []program.Op{convert.Op{To: program.Float32}}}}},
			},
		}, &tensor.Schema{
			Dense: []string{"int_0"}, IDs: tensor.Int64, Keys: []tensor.Key{{Name: "cat_0", NumEmbeddings: buckets}},
		}
}
