package processor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHostMemoryIsUsedAgain checks that mini-batches of nearly the same size need no new memory.
func TestHostMemoryIsUsedAgain(t *testing.T) {
	var h hostMemory
	first := h.get(1_000_000)
	require.GreaterOrEqual(t, len(first), 1_000_000)
	h.put(first)
	for _, size := range []uint64{999_000, 1_000_000, 1_001_000} {
		again := h.get(size)
		assert.Same(t, &first[0], &again[0], size)
		h.put(again)
	}
	larger := h.get(2_000_000)
	assert.NotSame(t, &first[0], &larger[0])
	h.put(larger)
	small := h.get(1)
	assert.Same(t, &first[0], &small[0], "the least that is large enough")
}

// TestHostMemoryThatIsFreeIsBounded checks that the largest pieces are kept.
func TestHostMemoryThatIsFreeIsBounded(t *testing.T) {
	var h hostMemory
	var taken [][]byte
	for i := range 5 {
		taken = append(taken, h.get(uint64(1000<<i)))
	}
	for _, i := range []int{4, 0, 3, 1, 2} {
		h.put(taken[i])
	}
	require.Len(t, h.free, maxFreeHostMemory)
	assert.Same(t, &taken[3][0], &h.free[0][0])
	assert.Same(t, &taken[4][0], &h.free[1][0])
}

// TestHostMemorySize checks that memory is never smaller than asked for, and an eighth larger at most.
func TestHostMemorySize(t *testing.T) {
	for _, size := range []uint64{0, 1, 63, 64, 65, 1024, 1025, 4095, 1 << 20, 1<<20 + 1, 48_000_000, 1<<32 + 1} {
		got := hostMemorySize(size)
		assert.GreaterOrEqual(t, got, size)
		assert.LessOrEqual(t, got, size+size/8+64)
		assert.Equal(t, got, hostMemorySize(got))
	}
}
