package vocabulary

import (
	"sync"
	"unsafe"

	unit "github.com/millrace/millrace/fpga/unit/vocabulary"
	"github.com/millrace/millrace/internal/hugepages"
)

// heldMemory makes the blocks of held keys, many from one piece of memory in huge pages: each key is written once, and
// most of the time of that is the page faults of small pages. A piece stays until no block of it is used, so blocks
// that are given back are used again. heldMemory is safe for concurrent use. A nil heldMemory makes each block alone.
type heldMemory struct {
	mu   sync.Mutex
	left []byte   // left is the part of the last piece that is free
	free [][]byte // blocks that were given back
}

// heldBlockBytes is the memory of a block of held keys.
const heldBlockBytes = 256 << 10

// heldBlockKeys returns how many keys a block has.
func heldBlockKeys[K unit.EncodedKey]() int { return heldBlockBytes / int(unsafe.Sizeof(K(0))) }

// heldKeyBytes returns the memory of a key that is held.
func heldKeyBytes[K unit.EncodedKey]() int64 { return int64(unsafe.Sizeof(K(0))) }

// newHeldMemory returns memory for at most some bytes of keys, or nil if a piece would be more than a part of them.
func newHeldMemory(most int64) *heldMemory {
	if most < 4*hugepages.Least {
		return nil
	}
	return &heldMemory{}
}

// blockBytes returns the memory of one block.
func (m *heldMemory) blockBytes() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := len(m.free) - 1; last >= 0 {
		block := m.free[last]
		m.free = m.free[:last]
		return block
	}
	if len(m.left) == 0 {
		m.left = hugepages.Make(hugepages.Least)
	}
	block := m.left[:heldBlockBytes:heldBlockBytes]
	m.left = m.left[heldBlockBytes:]
	return block
}

// newHeldBlock returns an empty block with room for heldBlockKeys keys.
func newHeldBlock[K unit.EncodedKey](m *heldMemory) []K {
	if m == nil {
		return make([]K, 0, heldBlockKeys[K]())
	}
	return unsafe.Slice((*K)(unsafe.Pointer(unsafe.SliceData(m.blockBytes()))), heldBlockKeys[K]())[:0]
}

// returnBlock takes a block whose keys are no longer held. A sequence's first block may be smaller than the others.
func returnBlock[K unit.EncodedKey](m *heldMemory, block []K) {
	if m == nil || cap(block) != heldBlockKeys[K]() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = append(m.free, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(block))), heldBlockBytes))
}
