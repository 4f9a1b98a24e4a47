package slicer

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestArea allocates and releases at random. Segments must never overlap, and released memory must form one segment
// again.
func TestArea(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Uint64Range(0, 64).Draw(t, "size") * grain
		a := newArea(size)
		var held []segment
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(held) > 0 && rapid.Bool().Draw(t, "give") {
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				a.releaseSegment(held[i])
				held = append(held[:i], held[i+1:]...)
			} else if s, ok := a.allocateSegment(rapid.Uint64Range(0, 1000).Draw(t, "bytes")); ok && s.size > 0 {
				for _, h := range held {
					require.True(t, s.end() <= h.offset || h.end() <= s.offset, "%v and %v overlap", s, h)
				}
				require.LessOrEqual(t, s.end(), size)
				require.Zero(t, s.offset%grain)
				held = append(held, s)
			}
			used := uint64(0)
			for _, h := range held {
				used += h.size
			}
			require.Equal(t, size-used, a.unusedBytes())
		}
		for _, h := range held {
			a.releaseSegment(h)
		}
		if _, ok := a.allocateSegment(size); !ok {
			require.Fail(t, "the whole area cannot be taken again")
		}
	})
	a := newArea(100)
	_, ok := a.allocateSegment(101)
	assert.False(t, ok)
	_, ok = a.allocateSegment(1 << 63)
	assert.False(t, ok)
}
