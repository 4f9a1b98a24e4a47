package vocabulary

import (
	"math"
	"math/bits"
	"slices"
	"sync"
	"unsafe"

	unit "github.com/millrace/millrace/fpga/unit/vocabulary"
	"github.com/millrace/millrace/internal/hugepages"
)

// heldColumn are the keys of a column, as far as no generator has them yet. A column at a time is faster than a
// mini-batch at a time, because the processor's caches hold one table and not those of all columns.
type heldColumn struct {
	sequences []heldSequence // of rows that do not overlap; at most mostSequences
	keys      int            // of all sequences; at most unit.MaxColumn
	all       uint32         // the bits that some key has
}

// heldSequence are keys of rows that came in order and without a gap, one each.
type heldSequence struct {
	first, end uint64     // rows
	blocks     [][]uint32 // of heldBlock keys, but for the last
}

// heldBlock is how many keys a block has.
const heldBlock = 1 << 16

// heldKeyBytes is the memory of a key that is held.
const heldKeyBytes = 4

// heldMemory makes the blocks of held keys, many from one piece of memory in huge pages: each key is written once, and
// most of the time of that is the page faults of small pages. A piece stays until no block of it is used, so blocks
// that are given back are used again. heldMemory is safe for concurrent use. A nil heldMemory makes each block alone.
type heldMemory struct {
	mu   sync.Mutex
	left []uint32   // of the last piece
	free [][]uint32 // blocks that were given back
}

// newHeldMemory returns memory for at most some bytes of keys, or nil if a piece would be more than a part of them.
func newHeldMemory(most int64) *heldMemory {
	if most < 4*hugepages.Least {
		return nil
	}
	return &heldMemory{}
}

// block returns an empty block with room for heldBlock keys.
func (m *heldMemory) block() []uint32 {
	if m == nil {
		return make([]uint32, 0, heldBlock)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := len(m.free) - 1; last >= 0 {
		block := m.free[last]
		m.free = m.free[:last]
		return block
	}
	if len(m.left) == 0 {
		piece := hugepages.Make(hugepages.Least)
		m.left = unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(piece))), len(piece)/heldKeyBytes)
	}
	block := m.left[:0:heldBlock]
	m.left = m.left[heldBlock:]
	return block
}

// giveBack takes a block whose keys are no longer held. A sequence's first block may be smaller than the others.
func (m *heldMemory) giveBack(block []uint32) {
	if m == nil || cap(block) != heldBlock {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = append(m.free, block[:0])
}

// hold takes keys of consecutive rows, one each. It reports false, and takes none, if a key is not one of 32 bits
// without a sign, if there are too many keys, or if the rows continue no sequence and there are too many.
func (h *heldColumn) hold(memory *heldMemory, first uint64, keys []int64) bool {
	if len(keys) == 0 {
		return true
	}
	if len(keys) > unit.MaxColumn-h.keys {
		return false
	}
	s := h.sequenceOf(first)
	if s == nil {
		return false
	}
	all := uint64(0)
	for left := keys; len(left) > 0; {
		last := len(s.blocks) - 1
		if last < 0 || len(s.blocks[last]) == heldBlock {
			s.blocks = append(s.blocks, nil)
			last++
		}
		block := s.blocks[last]
		part := left[:min(len(left), heldBlock-len(block))]
		left = left[len(part):]
		if last > 0 && block == nil {
			block = memory.block()
		}
		block = slices.Grow(block, len(part)) // the first block is as large as its keys want
		to := block[len(block) : len(block)+len(part)]
		for i, key := range part {
			to[i] = uint32(key)
			all |= uint64(key)
		}
		s.blocks[last] = block[:len(block)+len(part)]
	}
	if all > math.MaxUint32 {
		s.drop(len(keys))
		return false
	}
	s.end += uint64(len(keys))
	h.keys += len(keys)
	h.all |= uint32(all)
	return true
}

// drop takes the last keys back.
func (s *heldSequence) drop(keys int) {
	for keys > 0 {
		last := len(s.blocks) - 1
		n := min(keys, len(s.blocks[last]))
		s.blocks[last] = s.blocks[last][:len(s.blocks[last])-n]
		if keys -= n; len(s.blocks[last]) == 0 {
			s.blocks = s.blocks[:last]
		}
	}
}

// sequenceOf returns the sequence that a row continues, or a new one; nil: there are too many.
func (h *heldColumn) sequenceOf(first uint64) *heldSequence {
	for i := range h.sequences {
		if s := &h.sequences[i]; s.end == first {
			return s
		}
	}
	if len(h.sequences) == mostSequences {
		return nil
	}
	h.sequences = append(h.sequences, heldSequence{first: first, end: first})
	return &h.sequences[len(h.sequences)-1]
}

// sort brings the sequences in the order of their rows.
func (h *heldColumn) sort() {
	slices.SortFunc(h.sequences, func(a, b heldSequence) int {
		if a.first < b.first {
			return -1
		}
		return 1
	})
}

// encode replaces all keys by their ids, less the base, and returns the different keys in the order of their rows.
func (h *heldColumn) encode(e *unit.Encoder) []int64 {
	h.sort()
	var blocks [][]uint32
	for _, s := range h.sequences {
		blocks = append(blocks, s.blocks...)
	}
	return e.Encode(blocks, bits.Len32(h.all))
}
