package occurrence

import "math/bits"

// hashedKeys are what was seen of any keys: a hash table with open addressing, at most half full.
type hashedKeys struct {
	slots     []hashedSlot // a power of two
	positions []uint64     // positions has the position of each slot's key
	used      int

	// smallByWidth counts the keys that could move to an array, by the bits of their number.
	smallByWidth [maxDenseWidth + 1]int

	homes   [foldBlock]uint64
	touched uint64 // so that the loads of addBlock are not left out
}

// hashedSlot is a place for a key. Two of them fill half a cache line.
type hashedSlot struct {
	key   int64
	count uint64 // 0: the slot is free
}

// maxDenseWidth is the greatest width of keys in an array.
const maxDenseWidth = 22

const leastSlots = 1 << 10

// addBlock folds up to foldBlock keys in. places are their places in a block whose positions are step apart. inOrder
// says that no greater position was added before. addBlock reports whether a small key is new.
func (h *hashedKeys) addBlock(keys []int64, places []uint16, position, step uint64, inOrder bool) (newSmall bool) {
	for 2*(h.used+len(keys)) > len(h.slots) {
		h.growTable()
	}
	// All slots of the block are loaded before the first is compared, so that the processor waits for all of them at
	// once.
	mask := uint64(len(h.slots) - 1)
	shift := h.hashShift()
	slots := h.slots
	homes := h.homes[:len(keys)]
	touched := uint64(0)
	for i, key := range keys {
		home := hashKey(key) >> shift
		homes[i] = home
		touched += slots[home&mask].count
	}
	h.touched = touched
	for i, key := range keys {
		at := homes[i] & mask
		s := &slots[at]
		for s.key != key || s.count == 0 {
			if s.count == 0 {
				s.key, h.positions[at] = key, position+uint64(places[i])*step
				h.used++
				if width := bits.Len64(uint64(key)); width <= maxDenseWidth {
					h.smallByWidth[width]++
					newSmall = true
				}
				break
			}
			at = (at + 1) & mask
			s = &slots[at]
		}
		if s.count++; s.count == 0 {
			s.count--
		}
		if !inOrder {
			h.positions[at] = min(h.positions[at], position+uint64(places[i])*step)
		}
	}
	return newSmall
}

// hashKey spreads keys over all numbers.
func hashKey(key int64) uint64 {
	x := uint64(key)
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return (x ^ x>>29) * 0x9e3779b97f4a7c15
}

// hashShift is what remains of a hash for a slot.
func (h *hashedKeys) hashShift() uint { return 64 - uint(bits.TrailingZeros(uint(len(h.slots)))) }

func (h *hashedKeys) growTable() { h.rebuildTable(max(2*len(h.slots), leastSlots), nil) }

// rebuildTable gives the table another number of slots, without the keys that drop takes.
func (h *hashedKeys) rebuildTable(length int, drop func(e Entry) bool) {
	slots, positions := h.slots, h.positions
	h.slots, h.positions, h.used = make([]hashedSlot, length), make([]uint64, length), 0
	mask := uint64(length - 1)
	shift := h.hashShift()
	for i := range slots {
		s := &slots[i]
		if s.count == 0 || drop != nil && drop(Entry{Key: s.key, Position: positions[i], Count: s.count}) {
			continue
		}
		at := hashKey(s.key) >> shift
		for h.slots[at].count != 0 {
			at = (at + 1) & mask
		}
		h.slots[at], h.positions[at] = *s, positions[i]
		h.used++
	}
}

// takeBelow removes the keys from 0 to one before end, and returns their entries in no order.
func (h *hashedKeys) takeBelow(end int64) (taken []Entry) {
	n := 0
	for width := range h.smallByWidth {
		if int64(1)<<width <= end {
			n += h.smallByWidth[width]
			h.smallByWidth[width] = 0
		}
	}
	taken = make([]Entry, 0, n)
	length := leastSlots
	for length < 2*(h.used-n) {
		length *= 2
	}
	h.rebuildTable(length, func(e Entry) bool {
		if uint64(e.Key) >= uint64(end) {
			return false
		}
		taken = append(taken, e)
		return true
	})
	return taken
}

// takeAll returns the entries in no order, and empties the table.
func (h *hashedKeys) takeAll() []Entry {
	list := make([]Entry, 0, h.used)
	for i := range h.slots {
		if s := &h.slots[i]; s.count != 0 {
			list = append(list, Entry{Key: s.key, Position: h.positions[i], Count: s.count})
		}
	}
	*h = hashedKeys{}
	return list
}
