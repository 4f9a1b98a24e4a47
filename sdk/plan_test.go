package sdk

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/program"
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

// TestGeometry moves random ranges of a partition in extents and finds its bytes where they belong.
func TestGeometry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		block := rapid.SampledFrom([]uint64{1, 512, 4096}).Draw(t, "block")
		phase := rapid.Uint64Range(0, block-1).Draw(t, "phase")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var device []byte
		var data []byte
		p := &Partition{Name: "p"}
		for i := range rapid.IntRange(1, 4).Draw(t, "extents") {
			n := block * (1 + rng.Uint64N(4))
			device = append(device, make([]byte, block*rng.Uint64N(3))...)
			if i == 0 {
				device = append(device, make([]byte, phase)...)
				n -= phase
			}
			p.Extents = append(p.Extents, Extent{Offset: int64(len(data)), Device: int64(len(device)), Len: int64(n)})
			for range n {
				b := byte(rng.Uint32())
				device, data = append(device, b), append(data, b)
			}
		}
		p.Size = int64(len(data))
		require.NoError(t, checkExtents(p.Extents, p.Size))
		g, err := p.geometry(Limits{Block: block, Device: true})
		require.NoError(t, err)
		from := rng.Uint64N(uint64(len(data)))
		to := from + 1 + rng.Uint64N(uint64(len(data))-from)
		lo, hi := g.cover(from, to)
		memory := make([]byte, hi-lo)
		total := uint64(0)
		for _, m := range g.moves(nil, lo, hi, 0) {
			require.Zero(t, m.From%block)
			require.Zero(t, m.Len%block)
			copy(memory[m.To:m.To+m.Len], device[m.From:m.From+m.Len])
			total += m.Len
		}
		require.Equal(t, hi-lo, total)
		require.Equal(t, data[from:to], memory[from+g.phase-lo:to+g.phase-lo])
	})
}

func TestExtentsAreChecked(t *testing.T) {
	for name, e := range map[string][]Extent{
		"a hole":               {{0, 0, 512}, {1024, 4096, 512}},
		"an overlap":           {{0, 0, 512}, {256, 4096, 1024}},
		"nothing at the start": {{512, 0, 1024}},
		"an empty extent":      {{0, 0, 0}, {0, 512, 1024}},
		"before the drive":     {{0, -512, 1024}},
		"too short":            {{0, 0, 1000}},
	} {
		assert.Error(t, checkExtents(e, 1024), name)
	}
	assert.NoError(t, checkExtents([]Extent{{0, 512, 512}, {512, 0, 600}}, 1024))

	p := &Partition{Name: "p", Size: 1024, Extents: []Extent{{0, 0, 700}, {700, 4096, 324}}}
	_, err := p.geometry(Limits{Block: 512, Device: true})
	require.ErrorIs(t, err, ErrPartition)
	_, err = p.geometry(Limits{Block: 1, Device: true})
	require.NoError(t, err)
	_, err = p.geometry(Limits{Block: 3})
	require.Error(t, err)
	p.Extents = nil
	_, err = p.geometry(Limits{Block: 512, Device: true})
	require.ErrorIs(t, err, ErrPartition)
}

func TestMovesAreJoined(t *testing.T) {
	g := geometry{block: 1}
	m := g.moves(nil, 0, 100, 1000)
	m = g.moves(m, 100, 150, 1100)
	m = g.moves(m, 150, 160, 5000)
	assert.Equal(t, []Move{{0, 150, 1000}, {150, 10, 5000}}, m)
}

// TestSlots holds the ring against what is lent of it.
func TestSlots(t *testing.T) {
	l := &lane{base: 0, end: 10 * grain, result: Span{Len: grain}}
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
