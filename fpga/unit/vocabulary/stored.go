package vocabulary

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"unsafe"
)

// Sizes of a stored table's entries in bytes.
const (
	arrayEntry = 4  // an index + 1; 0: no key
	slotEntry  = 16 // a key of 8 bytes, its index + 1 in 4 bytes (0: the slot is free), 4 zero
)

// StoredAlign is what a stored table's address is a multiple of, in bytes.
const StoredAlign = 8

// maxProbes bounds the slots at which a lookup in a stored table looks. A table is at most half full, so that the
// longest run of taken slots grows with the logarithm of the keys.
const maxProbes = 1 << 10

// Shape says how the bytes of a stored table are to be read.
type Shape struct {
	Hashed bool
	// Entries is the number of elements of the array, or of slots, which is a power of two.
	Entries uint64
	Keys    uint32 // whose indices the table has

	Least int64 // array: the key of the first element

	Multiplier uint64 // hashed: odd
	Probes     uint32 // hashed: the most slots at which a lookup looks, 1 to 1024
}

// Bytes returns the length of the table. The shape must be valid.
func (s Shape) Bytes() uint64 {
	if s.Hashed {
		return slotEntry * s.Entries
	}
	return arrayEntry * s.Entries
}

// Check returns an error if no table has the shape.
func (s Shape) Check() error {
	const most = denseSpread*(MaxKeys+1) + denseLeast // of an array; slots are fewer
	switch {
	case s.Keys > MaxKeys:
		return fmt.Errorf("vocabulary: %d keys, at most %d", s.Keys, MaxKeys)
	case s.Entries > most || uint64(s.Keys) > s.Entries:
		return fmt.Errorf("vocabulary: a table of %d entries for %d keys", s.Entries, s.Keys)
	case !s.Hashed && (s.Multiplier != 0 || s.Probes != 0), s.Hashed && s.Least != 0:
		return errors.New("vocabulary: a table that is an array and hashed")
	case !s.Hashed:
	case s.Entries < 2 || s.Entries&(s.Entries-1) != 0:
		return fmt.Errorf("vocabulary: %d slots, want a power of two of at least 2", s.Entries)
	case s.Multiplier&1 == 0:
		return fmt.Errorf("vocabulary: the multiplier %#x is even", s.Multiplier)
	case s.Probes < 1 || s.Probes > maxProbes:
		return fmt.Errorf("vocabulary: %d probes, want 1 to %d", s.Probes, maxProbes)
	}
	return nil
}

// ShapeOf returns the shape of the table that Store makes of different keys, without what only Store finds: the
// multiplier and the probes.
func ShapeOf(keys []int64) Shape {
	s := Shape{Keys: uint32(len(keys))}
	if len(keys) == 0 {
		return s
	}
	least, greatest := slices.Min(keys), slices.Max(keys)
	span := uint64(greatest) - uint64(least) // without overflow, as an unsigned number
	if span < denseLeast || span/denseSpread < uint64(len(keys)) {
		s.Entries, s.Least = span+1, least
		return s
	}
	s.Hashed, s.Entries = true, 1<<bits.Len(uint(2*len(keys)-1))
	return s
}

// Store returns the bytes of a table of different keys, for the memory of a drive, and their shape. All numbers are
// little-endian.
func Store(keys []int64) (Shape, []byte, error) {
	if len(keys) > MaxKeys {
		return Shape{}, nil, fmt.Errorf("vocabulary: %d keys, at most %d", len(keys), MaxKeys)
	}
	s := ShapeOf(keys)
	if !s.Hashed {
		b, err := s.storeArray(keys)
		return s, b, err
	}
	const attempts = 8 // a multiplier whose longest run of slots is too long is as good as impossible
	for range attempts {
		var seed [8]byte
		_, _ = rand.Read(seed[:]) // it never fails
		s.Multiplier = binary.LittleEndian.Uint64(seed[:]) | 1
		b, err := s.storeSlots(keys)
		if err != nil || b != nil {
			return s, b, err
		}
	}
	return Shape{}, nil, fmt.Errorf("vocabulary: %d keys collide under %d multipliers", len(keys), attempts)
}

func (s *Shape) storeArray(keys []int64) ([]byte, error) {
	b := make([]byte, s.Bytes())
	for i, key := range keys {
		at := b[arrayEntry*(uint64(key)-uint64(s.Least)):]
		if first := binary.LittleEndian.Uint32(at); first != 0 {
			return nil, &DuplicateError{Key: key, First: int(first) - 1, Second: i}
		}
		binary.LittleEndian.PutUint32(at, uint32(i)+1)
	}
	return b, nil
}

// storeSlots returns the slots and sets the probes. It returns no slots if a lookup would look at too many of them.
func (s *Shape) storeSlots(keys []int64) ([]byte, error) {
	b := make([]byte, s.Bytes())
	mask := s.Entries - 1
	for i, key := range keys {
		at := s.home(key)
		for probe := uint32(1); ; probe++ {
			if probe > maxProbes {
				return nil, nil
			}
			slot := b[slotEntry*at:][:slotEntry]
			next := binary.LittleEndian.Uint32(slot[8:])
			if next == 0 {
				binary.LittleEndian.PutUint64(slot, uint64(key))
				binary.LittleEndian.PutUint32(slot[8:], uint32(i)+1)
				s.Probes = max(s.Probes, probe)
				break
			}
			if int64(binary.LittleEndian.Uint64(slot)) == key {
				return nil, &DuplicateError{Key: key, First: int(next) - 1, Second: i}
			}
			at = (at + 1) & mask
		}
	}
	return b, nil
}

// home returns the first slot in which a key is looked for.
func (s *Shape) home(key int64) uint64 {
	x := uint64(key)
	x = (x ^ x>>32) * s.Multiplier
	return (x ^ x>>29) * 0x9e3779b97f4a7c15 >> (64 - bits.TrailingZeros64(s.Entries))
}

// Stored is a table that lies in memory which others may write: the memory of a drive. Whatever the memory holds, a
// lookup ends, reads nothing outside it and does not panic.
type Stored struct {
	shape Shape
	array []uint32
	slots []storedSlot
}

// storedSlot is a slot as it lies in memory.
type storedSlot struct {
	key  int64
	next uint32
	_    uint32
}

// View returns the table of a shape over its bytes, which it does not copy. The machine must be little-endian, and the
// bytes must begin at a multiple of StoredAlign.
func View(s Shape, b []byte) (Stored, error) {
	if err := s.Check(); err != nil {
		return Stored{}, err
	}
	v := Stored{shape: s}
	if s.Bytes() != uint64(len(b)) {
		return Stored{}, fmt.Errorf("vocabulary: a table of %d bytes in %d", s.Bytes(), len(b))
	}
	if len(b) == 0 {
		return v, nil
	}
	first := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(first)%StoredAlign != 0 {
		return Stored{}, fmt.Errorf("vocabulary: a table that does not begin at a multiple of %d bytes", StoredAlign)
	}
	if s.Hashed {
		v.slots = unsafe.Slice((*storedSlot)(first), s.Entries)
	} else {
		v.array = unsafe.Slice((*uint32)(first), s.Entries)
	}
	return v, nil
}

// Lookup sets each element of indices to the index of the key at the same place, or to Absent, and reports whether all
// keys have an index. Both slices have the same length and do not overlap.
func (v *Stored) Lookup(indices, keys []int64) (complete bool) {
	indices = indices[:len(keys)]
	lowest := int64(0)
	if !v.shape.Hashed {
		array, least := v.array, uint64(v.shape.Least)
		for i, key := range keys {
			next := uint32(0)
			if at := uint64(key) - least; at < uint64(len(array)) {
				next = array[at]
			}
			index := int64(int32(next)) - 1
			indices[i] = index
			lowest |= index
		}
		return lowest >= 0
	}
	slots := v.slots
	mask := uint64(len(slots) - 1)
	for len(keys) > 0 {
		n := min(len(keys), hashedBlock)
		loaded := uint32(0)
		for i, key := range keys[:n] {
			at := v.shape.home(key)
			indices[i] = int64(at)
			loaded |= slots[at&mask].next
		}
		if loaded == 0 { // every slot is free: the table has none of the keys
			lowest = int64(Absent)
		}
		for i, key := range keys[:n] {
			at, next := uint64(indices[i]), uint32(0)
			for range v.shape.Probes {
				s := &slots[at&mask]
				if s.next == 0 {
					break
				}
				if s.key == key {
					next = s.next
					break
				}
				at++
			}
			index := int64(int32(next)) - 1
			indices[i] = index
			lowest |= index
		}
		keys, indices = keys[n:], indices[n:]
	}
	return lowest >= 0
}
