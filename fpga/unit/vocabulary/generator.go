package vocabulary

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
	"slices"
)

// Generator gives keys their indices in the order of first appearance: Piper's and MiniPipe's GenVocab. It keeps a
// table that is ready for lookups, and the list of keys. The zero value has no key and an array of leastArray elements
// at most; see [NewGenerator]. A Generator may be used by one goroutine at a time.
type Generator struct {
	keys      []int64  // in the order of their indices
	dense     []uint32 // index + 1 of the key i, or 0
	mostDense int      // elements of dense

	// Keys that are not in the array have slots: a power of two of them, at most half taken.
	slots      []slot
	shift      uint8
	multiplier uint64
	used       int // slots that are taken
	// smallByWidth counts the keys in slots that could move to the array, by the bits of their number.
	smallByWidth [maxArrayWidth + 1]int
}

const (
	// maxArrayWidth is the greatest width of a key in a generator's array: 16 MiB.
	maxArrayWidth = 22
	// leastArray is the length up to which a generator makes an array however few keys it would have: 16 KiB.
	leastArray = 1 << 12
	// arrayShare is the least share of an array's elements that have keys when the array is made: one of 16.
	arrayShare = 16
	leastSlots = 1 << 10
	// generatorBlock is how many keys are folded in at once, so that they stay in the first-level cache.
	generatorBlock = 256
)

// NewGenerator makes a generator whose array takes at most some bytes.
func NewGenerator(arrayBytes int64) *Generator {
	g := &Generator{mostDense: 1 << maxArrayWidth}
	for g.mostDense > leastArray && 4*int64(g.mostDense) > arrayBytes {
		g.mostDense /= 2
	}
	return g
}

// Keys returns the keys in the order of their indices. The generator owns the slice.
func (g *Generator) Keys() []int64 { return g.keys }

// Bytes returns the memory of the keys and of the table. Slots count three times: the table takes that while it grows.
func (g *Generator) Bytes() int64 {
	return 8*int64(cap(g.keys)) + 4*int64(len(g.dense)) + 3*slotBytes*int64(len(g.slots))
}

// slotBytes is the memory of a slot.
const slotBytes = 16

// Generate gives every key that has no index the next one. A generator takes at most [MaxKeys] different keys; the
// caller sees to that.
func Generate[K Key](g *Generator, keys []K) {
	for len(keys) > 0 {
		block := keys[:min(len(keys), generatorBlock)]
		keys = keys[len(block):]
		if rest := generateDense(g, block); len(rest) > 0 && generateAny(g, rest) {
			g.growDense()
		}
	}
}

// generateDense is Generate of keys in the array. It ends before the first other key, and returns the keys from that
// on. Whether a key is new is as good as random while a vocabulary fills, so that no branch depends on it: every key is
// noted, and the next one overwrites it unless the key is new.
func generateDense[K Key](g *Generator, block []K) (rest []K) {
	dense := g.dense
	var noted [generatorBlock]int64
	last, found := uint32(len(g.keys)), uint32(0)
	for i, key := range block {
		if uint64(int64(key)) >= uint64(len(dense)) {
			rest = block[i:]
			break
		}
		next := dense[key]
		noted[found%generatorBlock] = int64(key)
		isNew := uint32((uint64(next) - 1) >> 63)
		found += isNew
		dense[key] = next | (last+found)&-isNew
	}
	g.keys = append(g.keys, noted[:found]...)
	return rest
}

// generateAny is Generate of up to generatorBlock keys, wherever their places are. It reports whether a key that could
// be in the array has got a slot.
func generateAny[K Key](g *Generator, block []K) (newSmall bool) {
	for 2*(g.used+len(block)) > len(g.slots) {
		g.growSlots()
	}
	// All slots of the block are loaded before the first is compared, so that the processor waits for all of them at
	// once.
	slots, dense := g.slots, g.dense
	mask := uint64(len(slots) - 1)
	var homes [generatorBlock]uint64
	loaded := uint32(0)
	for i, key := range block {
		home := hashOf(int64(key), g.multiplier) >> g.shift
		homes[i%generatorBlock] = home
		loaded |= slots[home&mask].next
	}
	if loaded == 0 { // every slot is free, as in a table of few keys
		homes[0] &= mask
	}
	for i, k := range block {
		key := int64(k)
		if uint64(key) < uint64(len(dense)) {
			if dense[key] == 0 {
				g.keys = append(g.keys, key)
				dense[key] = uint32(len(g.keys))
			}
			continue
		}
		at := homes[i%generatorBlock]
		s := &slots[at&mask]
		for s.key != key && s.next != 0 {
			at++
			s = &slots[at&mask]
		}
		if s.next != 0 {
			continue
		}
		g.keys = append(g.keys, key)
		*s = slot{key: key, next: uint32(len(g.keys))}
		g.used++
		if width := bits.Len64(uint64(key)); width <= maxArrayWidth {
			g.smallByWidth[width]++
			newSmall = true
		}
	}
	return newSmall
}

// growSlots doubles the slots. Homes are the high bits of hashes, so that slots move in the order of their memory.
func (g *Generator) growSlots() {
	if g.multiplier == 0 {
		g.multiplier = randomMultiplier()
	}
	g.rebuild(max(2*len(g.slots), leastSlots), 0)
}

// rebuild gives the generator another number of slots, without the keys from 0 to one before end.
func (g *Generator) rebuild(length int, end uint64) {
	before := g.slots
	g.slots, g.used = make([]slot, length), 0
	g.shift = uint8(64 - bits.TrailingZeros(uint(length)))
	for i := range before {
		if s := &before[i]; s.next != 0 && uint64(s.key) >= end {
			g.place(*s)
		}
	}
}

// place puts a key that has no slot into a free one.
func (g *Generator) place(s slot) {
	mask := uint64(len(g.slots) - 1)
	at := hashOf(s.key, g.multiplier) >> g.shift
	for g.slots[at&mask].next != 0 {
		at++
	}
	g.slots[at&mask] = s
	g.used++
}

// growDense moves small keys from slots to the array if there are enough of them.
func (g *Generator) growDense() {
	keys := len(g.keys) - g.used // in the array
	length := 0
	for width, n := range g.smallByWidth {
		span := 1 << width
		if span > g.mostDense {
			break
		}
		if keys += n; n > 0 && (span <= leastArray || keys >= span/arrayShare) {
			length = span
		}
	}
	if length <= len(g.dense) {
		return
	}
	g.dense = append(make([]uint32, 0, length), g.dense...)[:length]
	for i := range g.slots {
		if s := &g.slots[i]; s.next != 0 && uint64(s.key) < uint64(length) {
			g.dense[s.key] = s.next
		}
	}
	moved := 0
	for width := 0; 1<<width <= length && width <= maxArrayWidth; width++ {
		moved += g.smallByWidth[width]
		g.smallByWidth[width] = 0
	}
	least := leastSlots
	for least < 2*(g.used-moved) {
		least *= 2
	}
	if g.rebuild(least, uint64(length)); g.used == 0 {
		g.slots = nil
	}
}

// Table returns the table of all keys. The generator must not be used after it, but for Keys.
func (g *Generator) Table() *Table {
	if g.used == 0 {
		if g.dense == nil {
			g.dense = []uint32{}
		}
		return &Table{dense: g.dense}
	}
	for 2*len(g.keys) > len(g.slots) {
		g.growSlots()
	}
	for key, next := range g.dense {
		if next != 0 {
			g.place(slot{key: int64(key), next: next})
		}
	}
	return &Table{slots: g.slots, shift: g.shift, multiplier: g.multiplier}
}

// Append gives the keys of another generator that have no index the next ones, in their order.
func (g *Generator) Append(o *Generator) {
	g.keys = slices.Grow(g.keys, len(o.keys)/2)
	Generate(g, o.keys)
}

// randomMultiplier returns an odd number for hashOf.
func randomMultiplier() uint64 {
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // it never fails
	return binary.LittleEndian.Uint64(seed[:]) | 1
}

// hashOf spreads keys over all numbers.
func hashOf(key int64, multiplier uint64) uint64 {
	x := uint64(key)
	x = (x ^ x>>32) * multiplier
	return (x ^ x>>29) * 0x9e3779b97f4a7c15
}
