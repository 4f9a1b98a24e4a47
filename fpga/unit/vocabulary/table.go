package vocabulary

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// denseSpread is how many integers a table of dense keys spans at most for each key: an entry of the array has 4 bytes,
// and a key of the hash table takes 11 to 64.
const denseSpread = 8

// denseLeast is the span up to which keys are dense however few they are: 16 KiB.
const denseLeast = 1 << 12

// Table is a vocabulary for lookups: an array where the keys are dense, and a hash table elsewhere.
type Table struct {
	least int64 // Dense and narrow keys count from it.

	// Of dense keys: the index + 1 of the key least + i, or 0.
	dense []uint32

	// Of keys within 32 bits of the least one: slots of half the size, in which a key lies at its place or behind it.
	// Behind the last place are more slots, of which the last is free.
	narrow []narrowSlot
	places uint64

	// Of other keys: a power of two slots, at most half of them taken.
	slots []slot
	shift uint8 // 64 - log2(len(slots))

	multiplier uint64 // odd and random, so that no list of keys is chosen to collide
}

// narrowSlot is a place for a key, which is least+above. next is as in slot.
type narrowSlot struct{ above, next uint32 }

// narrowBytes is the memory of a narrowSlot.
const narrowBytes = 8

// sparseKeys is up to how many keys narrow slots are half full, and a key has 16 bytes. More keys fill three quarters:
// lookups take longer then, and a key has 11 bytes.
const sparseKeys = 1 << 23

// slot is a place for a key. next is the key's index + 1; 0: the slot is free.
type slot struct {
	key  int64
	next uint32
}

// NewTable makes the table of a list of different keys.
func NewTable(keys []int64) (*Table, error) {
	if len(keys) > MaxKeys {
		return nil, fmt.Errorf("vocabulary: %d keys, at most %d", len(keys), MaxKeys)
	}
	if len(keys) == 0 {
		return &Table{dense: []uint32{}}, nil
	}
	least, greatest := slices.Min(keys), slices.Max(keys)
	span := uint64(greatest) - uint64(least) // without overflow, as an unsigned number
	if span < denseLeast || span/denseSpread < uint64(len(keys)) {
		return newDenseTable(keys, least, span+1)
	}
	if span <= math.MaxUint32 {
		return newNarrowTable(keys, least)
	}
	return newHashTable(keys)
}

func newDenseTable(keys []int64, least int64, span uint64) (*Table, error) {
	t := &Table{least: least, dense: make([]uint32, span)}
	for i, key := range keys {
		at := uint64(key) - uint64(least)
		if first := t.dense[at]; first != 0 {
			return nil, &DuplicateError{Key: key, First: int(first) - 1, Second: i}
		}
		t.dense[at] = uint32(i) + 1
	}
	return t, nil
}

func newNarrowTable(keys []int64, least int64) (*Table, error) {
	t := &Table{least: least, places: 2 * uint64(len(keys))}
	if len(keys) > sparseKeys {
		t.places = uint64(len(keys)) * 4 / 3
	}
	for { // once, unless keys collide that a random multiplier nearly always keeps apart
		t.multiplier = randomMultiplier()
		const behind = 1 << 10
		t.narrow = make([]narrowSlot, t.places+min(t.places, behind))
		if done, err := t.fillNarrow(keys); done || err != nil {
			return t, err
		}
		t.places *= 2
	}
}

// fillNarrow reports whether all keys have a slot.
func (t *Table) fillNarrow(keys []int64) (done bool, err error) {
	for i, key := range keys {
		above := uint32(uint64(key) - uint64(t.least))
		for at := t.place(key); ; at++ {
			if at == uint64(len(t.narrow))-1 {
				return false, nil
			}
			s := &t.narrow[at]
			if s.next == 0 {
				*s = narrowSlot{above: above, next: uint32(i) + 1}
				break
			}
			if s.above == above {
				return false, &DuplicateError{Key: key, First: int(s.next) - 1, Second: i}
			}
		}
	}
	return true, nil
}

// place returns the first narrow slot in which a key is looked for.
func (t *Table) place(key int64) uint64 {
	place, _ := bits.Mul64(hashOf(key, t.multiplier), t.places)
	return place
}

func newHashTable(keys []int64) (*Table, error) {
	width := bits.Len(uint(2*len(keys) - 1))
	t := &Table{slots: make([]slot, 1<<width), shift: uint8(64 - width)}
	t.multiplier = randomMultiplier()
	mask := uint64(len(t.slots) - 1)
	for i, key := range keys {
		for at := t.home(key); ; at = (at + 1) & mask {
			s := &t.slots[at]
			if s.next == 0 {
				*s = slot{key: key, next: uint32(i) + 1}
				break
			}
			if s.key == key {
				return nil, &DuplicateError{Key: key, First: int(s.next) - 1, Second: i}
			}
		}
	}
	return t, nil
}

// home returns the first slot in which a key is looked for.
func (t *Table) home(key int64) uint64 { return hashOf(key, t.multiplier) >> t.shift }

// ID is the type of a column's keys, or of their indices.
type ID interface{ int32 | int64 }

// Key is the type of keys that get indices.
type Key interface {
	int32 | uint16 | uint32 | int64
}

// Lookup sets each element of indices to the index of the key at the same place, or to Absent, and reports whether all
// keys have an index. Both slices have the same length, and may be the same memory if their types are the same.
func Lookup[Index, Key ID](t *Table, indices []Index, keys []Key) (complete bool) {
	indices = indices[:len(keys)]
	switch {
	case t.narrow != nil:
		return lookupNarrow(t, indices, keys)
	case t.dense == nil:
		return lookupHashed(t, indices, keys)
	}
	dense, least := t.dense, uint64(t.least)
	lowest := Index(0)
	for i, key := range keys {
		next := uint32(0)
		if at := uint64(int64(key)) - least; at < uint64(len(dense)) {
			next = dense[at]
		}
		index := Index(int32(next) - 1)
		indices[i] = index
		lowest |= index
	}
	return lowest >= 0
}

// hashedBlock is how many slots are loaded before the first is compared, so that the processor waits for all of them
// at once.
const hashedBlock = 64

// lookupHashed is Lookup of a hash table.
func lookupHashed[Index, Key ID](t *Table, indices []Index, keys []Key) (complete bool) {
	slots := t.slots
	mask := uint64(len(slots) - 1)
	lowest := Index(0)
	var homes [hashedBlock]uint64
	for len(keys) > 0 {
		n := min(len(keys), hashedBlock)
		loaded := uint32(0)
		for i, key := range keys[:n] {
			at := t.home(int64(key)) & mask
			homes[i] = at
			loaded |= slots[at].next
		}
		if loaded == 0 { // every slot is free: the table has none of the keys
			lowest = Index(Absent)
		}
		for i, key := range keys[:n] {
			at := homes[i]
			s := &slots[at&mask]
			for s.key != int64(key) && s.next != 0 {
				at++
				s = &slots[at&mask]
			}
			index := Index(int32(s.next) - 1)
			indices[i] = index
			lowest |= index
		}
		keys, indices = keys[n:], indices[n:]
	}
	return lowest >= 0
}

// lookupNarrow is Lookup of a table of narrow slots.
func lookupNarrow[Index, Key ID](t *Table, indices []Index, keys []Key) (complete bool) {
	slots, least := t.narrow, uint64(t.least)
	lowest := Index(0)
	var places [hashedBlock]uint64
	for len(keys) > 0 {
		n := min(len(keys), hashedBlock)
		loaded := uint32(0)
		for i, key := range keys[:n] {
			at := t.place(int64(key))
			places[i] = at
			loaded |= slots[at].next
		}
		if loaded == 0 { // every slot is free: the table has none of the keys
			lowest = Index(Absent)
		}
		for i, key := range keys[:n] {
			above := uint64(int64(key)) - least
			at := places[i]
			s := slots[at]
			for s.above != uint32(above) && s.next != 0 {
				at++
				s = slots[at]
			}
			next := s.next
			if above > math.MaxUint32 {
				next = 0
			}
			index := Index(int32(next) - 1)
			indices[i] = index
			lowest |= index
		}
		keys, indices = keys[n:], indices[n:]
	}
	return lowest >= 0
}

// Bytes returns the memory of the table.
func (t *Table) Bytes() int64 {
	return 4*int64(len(t.dense)) + narrowBytes*int64(len(t.narrow)) + slotBytes*int64(len(t.slots))
}
