package processor

import (
	"math/bits"
	"slices"
	"sync"
)

// maxFreeHostMemory is how many pieces of memory a hostMemory keeps while no mini-batch uses them.
const maxFreeHostMemory = 2

// hostMemory is memory of this process for mini-batches that are copied from a target. A mini-batch gives its memory
// back when it is released, so that in the steady state no memory is allocated, cleared and touched for the first time.
// The zero value is ready. It is safe for concurrent use.
type hostMemory struct {
	mu   sync.Mutex
	free [][]byte // ascending by length
}

// get returns memory of at least size bytes, which begins at a multiple of 8. What it holds is arbitrary.
func (h *hostMemory) get(size uint64) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, b := range h.free {
		if uint64(len(b)) >= size {
			h.free = slices.Delete(h.free, i, i+1)
			return b
		}
	}
	return alignedBytes(hostMemorySize(size))
}

// hostMemorySize rounds a size up to an eighth of a power of two, so that mini-batches of nearly the same size use the
// same memory in turn.
func hostMemorySize(size uint64) uint64 {
	step := uint64(1) << max(bits.Len64(size)-4, 6)
	return (size + step - 1) &^ (step - 1)
}

// put takes memory back. If too much is free, the smallest piece is left to the garbage collector.
func (h *hostMemory) put(b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i, _ := slices.BinarySearchFunc(h.free, len(b), func(f []byte, n int) int { return len(f) - n })
	if h.free = slices.Insert(h.free, i, b); len(h.free) > maxFreeHostMemory {
		h.free = slices.Delete(h.free, 0, 1)
	}
}
