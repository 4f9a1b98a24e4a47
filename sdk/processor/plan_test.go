package processor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/target"
)

// TestArea takes and gives at random: pieces never overlap, and what is given back is whole again.
func TestArea(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Uint64Range(0, 64).Draw(t, "size") * grain
		a := newArea(size)
		var held []segment
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(held) > 0 && rapid.Bool().Draw(t, "give") {
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				a.give(held[i])
				held = append(held[:i], held[i+1:]...)
			} else if s, ok := a.take(rapid.Uint64Range(0, 1000).Draw(t, "bytes")); ok && s.size > 0 {
				for _, h := range held {
					require.True(t, s.end() <= h.off || h.end() <= s.off, "%v and %v overlap", s, h)
				}
				require.LessOrEqual(t, s.end(), size)
				require.Zero(t, s.off%grain)
				held = append(held, s)
			}
			used := uint64(0)
			for _, h := range held {
				used += h.size
			}
			require.Equal(t, size-used, a.unused())
		}
		for _, h := range held {
			a.give(h)
		}
		if _, ok := a.take(size); !ok {
			require.Fail(t, "the whole area cannot be taken again")
		}
	})
	a := newArea(100)
	_, ok := a.take(101)
	assert.False(t, ok)
	_, ok = a.take(1 << 63)
	assert.False(t, ok)
}

func TestMovesAreJoined(t *testing.T) {
	m := appendMoves(nil, []partition.Run{{From: 0, Len: 100}}, 1000)
	m = appendMoves(m, []partition.Run{{From: 100, Len: 50}}, 1100)
	m = appendMoves(m, []partition.Run{{From: 150, Len: 10}}, 5000)
	assert.Equal(t, []target.Move{{From: 0, Len: 150, To: 1000}, {From: 150, Len: 10, To: 5000}}, m)
}

// TestSlots holds the ring against what is lent of it.
func TestSlots(t *testing.T) {
	l := &lane{base: 0, end: 10 * grain, result: target.Span{Len: grain}}
	require.True(t, l.slots(4, 2*grain))
	assert.Equal(t, uint64(grain), l.room())
	a, b := l.acquire(), l.acquire()
	assert.Equal(t, 2, l.spare())
	l.giveBack(a)
	assert.Equal(t, 3, l.spare())
	// A new ring leaves the lent slot alone.
	require.True(t, l.slots(1, 3*grain))
	c := l.acquire()
	assert.LessOrEqual(t, c.addr+c.size, b.addr)
	assert.Nil(t, l.acquire())
	l.giveBack(c)
	l.giveBack(b)
	assert.False(t, l.slots(1, 10*grain))
	require.True(t, l.slots(1, 9*grain))
	assert.Zero(t, l.room())
}

// TestSeparate gives each key of an output with lengths a column of its own, and leaves other programs as they are.
func TestSeparate(t *testing.T) {
	sparse := func(i uint32) program.Sink { return program.Sink{To: program.ToSparse, Index: i} }
	prog := &program.Program{Source: program.Parquet, Output: program.Output{Keys: 3, Dense: 1}, Columns: []program.Column{
		{Name: "a", Kind: program.Int64, Sinks: []program.Sink{sparse(0), {To: program.ToDense, Ops: []program.Op{program.FillNull{}, program.Convert{To: program.Float32}}}, sparse(1)}},
		{Name: "b", Kind: program.Int64, Sinks: []program.Sink{sparse(2)}},
	}}
	require.NoError(t, prog.Validate())
	got := separate(prog)
	require.NoError(t, got.Validate())
	require.Len(t, got.Columns, 3)
	assert.Len(t, got.Columns[0].Sinks, 2)
	assert.Equal(t, "a", got.Columns[1].Name)
	assert.Equal(t, []program.Sink{sparse(1)}, got.Columns[1].Sinks)
	assert.Len(t, prog.Columns, 2, "the caller's program is as it was")
	prog.Output.Fixed = true
	assert.Same(t, prog, separate(prog))
}
