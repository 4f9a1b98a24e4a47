package vocabulary

import (
	"math"
	"math/bits"
	"slices"

	unit "github.com/millrace/millrace/fpga/unit/vocabulary"
)

// heldColumn are the keys of a column, as far as no generator has them yet. A column at a time is faster than a
// mini-batch at a time, because the processor's caches hold one table and not those of all columns. The zero value
// holds none.
//
// Keys are held in 16 bits until one has more. Most of the time of holding keys goes to pages that are new, so half of
// the memory is half of the time.
type heldColumn struct {
	narrow heldKeys[uint16]
	wide   heldKeys[uint32] // instead of narrow
	isWide bool
	keys   int    // at most unit.MaxColumn
	all    uint32 // the bits that some key has
}

// holdKeys takes keys of consecutive rows, one each. It reports false, and takes none, if a key is not one of 32 bits
// without a sign, if there are too many keys, or if the rows continue no sequence and there are too many. more is by
// how many bytes the keys of the column grew.
func (h *heldColumn) holdKeys(memory *heldMemory, first uint64, keys []int64) (more int64, held bool) {
	if len(keys) == 0 {
		return 0, true
	}
	if len(keys) > unit.MaxColumn-h.keys {
		return 0, false
	}
	before, all := h.memoryBytes(), uint64(0)
	if !h.isWide {
		all, held = h.narrow.holdKeys(memory, first, keys)
		if !held && all > math.MaxUint16 && all <= math.MaxUint32 {
			h.widenTo32Bits(memory)
		}
	}
	if h.isWide {
		all, held = h.wide.holdKeys(memory, first, keys)
	}
	if held {
		h.keys += len(keys)
		h.all |= uint32(all)
	}
	return h.memoryBytes() - before, held
}

// memoryBytes returns the memory of the keys.
func (h *heldColumn) memoryBytes() int64 {
	if h.isWide {
		return heldKeyBytes[uint32]() * int64(h.keys)
	}
	return heldKeyBytes[uint16]() * int64(h.keys)
}

// widenTo32Bits holds the keys in 32 bits from now on.
func (h *heldColumn) widenTo32Bits(memory *heldMemory) {
	for _, s := range h.narrow.sequences {
		wide := heldSequence[uint32]{first: s.first, end: s.end}
		for _, block := range s.blocks {
			appendKeys(memory, &wide, block)
			returnBlock(memory, block)
		}
		h.wide.sequences = append(h.wide.sequences, wide)
	}
	h.narrow.sequences, h.isWide = nil, true
}

// encodeKeys replaces all keys by their ids, less the base, and returns the different keys in the order of their rows.
func (h *heldColumn) encodeKeys(e *unit.Encoder) []int64 {
	width := bits.Len32(h.all)
	if h.isWide {
		return unit.Encode(e, h.wide.allBlocks(), width)
	}
	return unit.Encode(e, h.narrow.allBlocks(), width)
}

// holdsAllRows reports whether the column holds the keys of rows 0 to rows-1, without a gap and no others.
func (h *heldColumn) holdsAllRows(rows uint64) bool {
	if h.isWide {
		return h.wide.holdsAllRows(rows)
	}
	return h.narrow.holdsAllRows(rows)
}

// heldKeys are held keys of one width.
type heldKeys[K unit.EncodedKey] struct {
	sequences []heldSequence[K] // sequences hold rows that do not overlap; there are at most mostSequences
}

// heldSequence are keys of rows that came in order and without a gap, one each.
type heldSequence[K unit.EncodedKey] struct {
	first, end uint64 // rows
	blocks     [][]K  // blocks have heldBlockKeys keys each, but for the last
}

// holdKeys does what holdKeys of a column does. all are the bits that some of the keys has; they are 0 if the keys were
// not looked at.
func (h *heldKeys[K]) holdKeys(memory *heldMemory, first uint64, keys []int64) (all uint64, held bool) {
	s := h.sequenceOf(first)
	if s == nil {
		return 0, false
	}
	if all = appendKeys(memory, s, keys); all > uint64(^K(0)) {
		s.dropLastKeys(len(keys))
		return all, false
	}
	s.end += uint64(len(keys))
	return all, true
}

// appendKeys appends keys to the blocks of a sequence, each without the bits that do not fit. It returns the bits that
// some key has.
func appendKeys[K unit.EncodedKey, From int64 | uint16](memory *heldMemory, s *heldSequence[K], keys []From) uint64 {
	all := uint64(0)
	for len(keys) > 0 {
		last := len(s.blocks) - 1
		if last < 0 || len(s.blocks[last]) == heldBlockKeys[K]() {
			s.blocks = append(s.blocks, nil)
			last++
		}
		block := s.blocks[last]
		part := keys[:min(len(keys), heldBlockKeys[K]()-len(block))]
		keys = keys[len(part):]
		if last > 0 && block == nil {
			block = newHeldBlock[K](memory)
		}
		block = slices.Grow(block, len(part)) // the first block is as large as its keys want
		to := block[len(block) : len(block)+len(part)]
		for i, key := range part {
			to[i] = K(key)
			all |= uint64(key)
		}
		s.blocks[last] = block[:len(block)+len(part)]
	}
	return all
}

// dropLastKeys takes the last keys back.
func (s *heldSequence[K]) dropLastKeys(keys int) {
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
func (h *heldKeys[K]) sequenceOf(first uint64) *heldSequence[K] {
	for i := range h.sequences {
		if s := &h.sequences[i]; s.end == first {
			return s
		}
	}
	if len(h.sequences) == mostSequences {
		return nil
	}
	h.sequences = append(h.sequences, heldSequence[K]{first: first, end: first})
	return &h.sequences[len(h.sequences)-1]
}

// sortSequences brings the sequences in the order of their rows.
func (h *heldKeys[K]) sortSequences() {
	slices.SortFunc(h.sequences, func(a, b heldSequence[K]) int {
		if a.first < b.first {
			return -1
		}
		return 1
	})
}

// allBlocks returns the blocks of all sequences in the order of their rows.
func (h *heldKeys[K]) allBlocks() (blocks [][]K) {
	h.sortSequences()
	for _, s := range h.sequences {
		blocks = append(blocks, s.blocks...)
	}
	return blocks
}

// holdsAllRows does what holdsAllRows of a column does. The sequences are sorted.
func (h *heldKeys[K]) holdsAllRows(rows uint64) bool {
	end := uint64(0)
	for _, s := range h.sequences {
		if s.first != end {
			return false
		}
		end = s.end
	}
	return end == rows
}
