package mapid

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// MaxKeys is the greatest number of keys.
const MaxKeys = 1 << 20

// maxProbes is the number of slots that a lookup may read. Keys that need more are looked up by halving.
const maxProbes = 32

// multiplier spreads keys over the slots: 2^64 divided by the golden ratio.
const multiplier = 0x9e3779b97f4a7c15

// ErrKeys says that keys do not ascend, or are too many.
var ErrKeys = errors.New("map_id: keys must ascend")

// Index finds the positions of keys.
type Index struct {
	keys  []int64
	slots []int32 // position of a key plus 1, 0 for none; a power of two above twice the keys; nil: halve
	shift int
}

// New returns the index of ascending keys.
func New(keys []int64) (*Index, error) {
	if len(keys) > MaxKeys {
		return nil, fmt.Errorf("%d keys, want at most %d: %w", len(keys), MaxKeys, ErrKeys)
	}
	for i := 1; i < len(keys); i++ {
		if keys[i] <= keys[i-1] {
			return nil, fmt.Errorf("key %d (%d) behind %d: %w", i, keys[i], keys[i-1], ErrKeys)
		}
	}
	width := max(1, bits.Len(uint(2*len(keys))))
	x := &Index{keys: keys, slots: make([]int32, 1<<width), shift: 64 - width}
	for i, key := range keys {
		if !x.insert(key, int32(i+1)) {
			x.slots = nil
			break
		}
	}
	return x, nil
}

// insert puts a position into the first free slot, and reports whether one was near enough.
func (x *Index) insert(key int64, position int32) bool {
	at := uint64(key) * multiplier >> x.shift
	for range maxProbes {
		if x.slots[at] == 0 {
			x.slots[at] = position
			return true
		}
		at = (at + 1) & uint64(len(x.slots)-1)
	}
	return false
}

// Map sets dst[i] to the value of the key src[i], or to other if no key is src[i], for every i of src. values are as
// many as the keys. dst must be at least as long as src and may be src.
func (x *Index) Map(dst, src, values []int64, other int64) {
	dst = dst[:len(src)]
	if x.slots == nil {
		x.halve(dst, src, values, other)
		return
	}
	keys, slots, mask := x.keys, x.slots, uint64(len(x.slots)-1)
	values = values[:len(keys)]
	for i, id := range src {
		value := other
		for at := uint64(id) * multiplier >> x.shift; ; at++ {
			position := slots[at&mask]
			if position == 0 {
				break
			}
			if k := int(position - 1); keys[k] == id {
				value = values[k]
				break
			}
		}
		dst[i] = value
	}
}

// halve is Map by binary search.
func (x *Index) halve(dst, src, values []int64, other int64) {
	for i, id := range src {
		value := other
		if k, found := slices.BinarySearch(x.keys, id); found {
			value = values[k]
		}
		dst[i] = value
	}
}

// Dense sets dst[i] to values[src[i]], or to other if that does not exist, for every i of src. dst must be at least as
// long as src and may be src.
func Dense(dst, src, values []int64, other int64) {
	dst = dst[:len(src)]
	for i, id := range src {
		value := other
		if uint64(id) < uint64(len(values)) {
			value = values[id]
		}
		dst[i] = value
	}
}
