package slicer

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/target"
)

func TestMovesAreJoined(t *testing.T) {
	m := appendMoves(nil, target.FromPartition, []partition.Run{{From: 0, Len: 100}}, 1000)
	m = appendMoves(m, target.FromPartition, []partition.Run{{From: 100, Len: 50}}, 1100)
	m = appendMoves(m, target.FromPartition, []partition.Run{{From: 150, Len: 10}}, 5000)
	assert.Equal(t, []target.Move{{From: 0, Len: 150, To: 1000}, {From: 150, Len: 10, To: 5000}}, m)
}

// TestBuffers checks that the ring never gives out a lent buffer.
func TestBuffers(t *testing.T) {
	r := &Workspace{span: target.Span{Len: 10 * grain}, result: target.Span{Len: grain}}
	require.True(t, r.makeRingOf(4, 2*grain))
	assert.Equal(t, uint64(grain), r.areaBytes())
	a, b := r.acquireBuffer(), r.acquireBuffer()
	assert.Equal(t, 2, r.FreeBuffers())
	r.Release(a)
	assert.Equal(t, 3, r.FreeBuffers())
	// A new ring does not touch the lent buffer.
	require.True(t, r.makeRingOf(1, 3*grain))
	c := r.acquireBuffer()
	assert.LessOrEqual(t, c.Span.End(), b.Span.Addr)
	assert.Nil(t, r.acquireBuffer())
	r.Release(c)
	r.Release(b)
	assert.False(t, r.makeRingOf(1, 10*grain))
	require.True(t, r.makeRingOf(1, 9*grain))
	assert.Zero(t, r.areaBytes())
}

// TestSeparate gives each key of an output with lengths a column of its own, and leaves other programs as they are.
func TestSeparate(t *testing.T) {
	sparse := func(i uint32) program.Sink { return program.Sink{To: program.ToSparse, Index: i} }
	prog := &program.Program{Source: program.Parquet, Output: program.Output{Keys: 3, Dense: 1}, Columns: []program.Column{
		{Name: "a", Kind: program.Int64, Sinks: []program.Sink{
			sparse(0),
			{To: program.ToDense, Ops: []program.Op{fillnull.Op{}, convert.Op{To: program.Float32}}},
			sparse(1),
		}},
		{Name: "b", Kind: program.Int64, Sinks: []program.Sink{sparse(2)}},
	}}
	require.NoError(t, prog.Validate())
	got := separateKeys(prog)
	require.NoError(t, got.Validate())
	require.Len(t, got.Columns, 3)
	assert.Len(t, got.Columns[0].Sinks, 2)
	assert.Equal(t, "a", got.Columns[1].Name)
	assert.Equal(t, []program.Sink{sparse(1)}, got.Columns[1].Sinks)
	assert.Len(t, prog.Columns, 2, "the caller's program is as it was")
	prog.Output.Fixed = true
	assert.Same(t, prog, separateKeys(prog))
}
