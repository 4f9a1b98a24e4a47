package accumulator

import (
	"cmp"
	"math"
	"slices"
)

const (
	levelValues = 4096 // the number of values at which a level is full
	maxLevels   = 40   // each value of the last level stands for 2^39 values, more than a partition has
)

// ranks is a sketch of the ranks of values. Its values are in levels, and each value of level l stands for 2^l values.
// A full level is sorted, and every second of its values goes one level up. The half that goes up alternates, so that
// the errors of ranks cancel as a rule. The rank of a value among n differs from the exact one by less than
// n * levels / 4096, whatever the size of the values (J. I. Munro, M. S. Paterson, Selection and sorting with limited
// storage, 1980; Z. Karnin, K. Lang, E. Liberty, Optimal quantile approximation in streams, 2016).
//
// Values are represented by int64 keys that have the same order.
type ranks struct {
	levels []level
}

// level is the values of a level, in any order.
type level struct {
	keys []int64
	odd  bool // the values at odd places go up next
}

// add counts a key count times.
func (r *ranks) add(key, count int64) {
	for l := 0; count > 0; l, count = l+1, count>>1 {
		if count&1 != 0 {
			r.put(l, key)
		}
	}
}

// put adds keys to a level.
func (r *ranks) put(l int, keys ...int64) {
	for len(r.levels) <= l {
		r.levels = append(r.levels, level{})
	}
	at := &r.levels[l]
	at.keys = append(at.keys, keys...)
	if len(at.keys) < levelValues || l == maxLevels-1 {
		return
	}
	slices.Sort(at.keys)
	half := at.keys[:0:len(at.keys)]
	first := 0
	if at.odd {
		first = 1
	}
	at.odd = !at.odd
	pairs := len(at.keys) / 2
	rest, left := int64(0), len(at.keys)%2 != 0
	if left {
		rest = at.keys[len(at.keys)-1]
	}
	for i := range pairs {
		half = append(half, at.keys[2*i+first])
	}
	moved := slices.Clone(half)
	if at.keys = at.keys[:0]; left {
		at.keys = append(at.keys, rest)
	}
	r.put(l+1, moved...)
}

// addTable counts the values of a table. The order of the list does not matter.
func (r *ranks) addTable(list []counter, key func(bits uint64) int64) {
	slices.SortFunc(list, func(a, b counter) int { return cmp.Compare(a.bits, b.bits) })
	for _, c := range list {
		r.add(key(c.bits), c.count)
	}
}

// merge adds the values of a later part of the data.
func (r *ranks) merge(later *ranks) {
	for l := range later.levels {
		keys := slices.Clone(later.levels[l].keys)
		slices.Sort(keys)
		r.put(l, keys...)
	}
}

// count returns how many values the sketch stands for.
func (r *ranks) count() int64 {
	n := int64(0)
	for l := range r.levels {
		n += int64(len(r.levels[l].keys)) << l
	}
	return n
}

// sorted returns the keys in their order, with the number of values that each stands for.
func (r *ranks) sorted() []counter {
	var list []counter
	for l := range r.levels {
		for _, key := range r.levels[l].keys {
			list = append(list, counter{bits: uint64(key), count: 1 << l})
		}
	}
	slices.SortFunc(list, func(a, b counter) int { return cmp.Compare(int64(a.bits), int64(b.bits)) })
	return list
}

// keyOfReal returns the key of a finite float64 that is not a negative zero.
func keyOfReal(bits uint64) int64 {
	if bits>>63 != 0 {
		return -int64(bits &^ (1 << 63))
	}
	return int64(bits)
}

// realOfKey returns the bits of a key's float64.
func realOfKey(key int64) uint64 {
	if key < 0 {
		return uint64(-key) | 1<<63
	}
	return uint64(key)
}

// keyRange returns the least and the greatest key of real numbers.
func keyRange() (least, greatest int64) {
	greatest = int64(math.Float64bits(math.MaxFloat64))
	return -greatest, greatest
}
