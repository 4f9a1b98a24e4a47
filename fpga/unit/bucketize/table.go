package bucketize

import (
	"fmt"
	"math"
)

// Table is a set of borders made ready for search.
type Table struct {
	borders int
	compare Compare
	nan     NaN
	nanTo   int64 // the bucket of a NaN, unless nan is NaNFail

	narrow cells // for CompareFloat32
	wide   index // for the others
}

// New checks parameters and builds a table, in time and memory of the order of the borders. It keeps none of p's
// slices.
func New(p Params) (*Table, error) {
	if p.Side > SideRight || p.NaN > NaNFail || p.Compare > CompareInt64 {
		return nil, fmt.Errorf("side %d, nan %d, compare %d: %w", p.Side, p.NaN, p.Compare, ErrParams)
	}
	n := len(p.Borders) + len(p.Borders64) + len(p.BordersI64)
	switch {
	case n == 0:
		return nil, fmt.Errorf("no borders: %w", ErrBorders)
	case n != max(len(p.Borders), len(p.Borders64), len(p.BordersI64)):
		return nil, fmt.Errorf("borders of two kinds: %w", ErrParams)
	case p.Compare == CompareInt64 && len(p.BordersI64) == 0:
		return nil, fmt.Errorf("float borders compared as int64: %w", ErrParams)
	}
	for _, err := range []error{sorted(p.Borders), sorted(p.Borders64), sorted(p.BordersI64)} {
		if err != nil {
			return nil, err
		}
	}
	t := &Table{borders: n, compare: p.Compare, nan: p.NaN, nanTo: nanBucket(p.NaN, n)}
	switch p.Compare {
	case CompareFloat32:
		t.narrow = newCells(thresholds(keys32(p), p.Side))
	case CompareFloat64:
		t.wide = newIndex(thresholds(keys64(p), p.Side), coarseFloat64)
	case CompareInt64:
		t.wide = newIndex(thresholds(keysInt64(p), p.Side), coarseInt64)
	}
	return t, nil
}

// Buckets returns the number of buckets, one more than there are borders: every result is below it.
func (t *Table) Buckets() int { return t.borders + 1 }

func nanBucket(nan NaN, borders int) int64 {
	switch {
	case nan == NaNLast:
		return int64(borders)
	case nan == NaNTorchArrow && borders > 1:
		return 1
	}
	return 0
}

func sorted[T int64 | float32 | float64](borders []T) error {
	for i, b := range borders {
		if b != b {
			return fmt.Errorf("border %d is NaN: %w", i, ErrBorders)
		}
		if i > 0 && b < borders[i-1] {
			return fmt.Errorf("border %d is %v, after %v: %w", i, b, borders[i-1], ErrBorders)
		}
	}
	return nil
}

// The keys of a type are unsigned numbers in the order of its values, next to each other where the values are.
// Both zeros have one key.

func key32(v float32) uint32 {
	b := math.Float32bits(v + 0) // -0 + 0 is +0
	return b ^ (uint32(int32(b)>>31) | 1<<31)
}

func key64(v float64) uint64 {
	b := math.Float64bits(v + 0)
	return b ^ (uint64(int64(b)>>63) | 1<<63)
}

func keyInt64(v int64) uint64 { return uint64(v) ^ 1<<63 }

// Coarse keys are 32-bit numbers in the order of the keys, not always different for different keys.

func coarseFloat64(key uint64) uint32 { return uint32(key >> 32) }

func coarseInt64(key uint64) uint32 { return coarseFloat64(key64(float64(int64(key ^ 1<<63)))) }

func keys32(p Params) []uint32 {
	keys := make([]uint32, 0, max(len(p.Borders), len(p.Borders64), len(p.BordersI64)))
	for _, b := range p.Borders {
		keys = append(keys, key32(b))
	}
	for _, b := range p.Borders64 {
		keys = append(keys, key32(float32(b)))
	}
	for _, b := range p.BordersI64 {
		keys = append(keys, key32(float32(b)))
	}
	return keys
}

func keys64(p Params) []uint64 {
	keys := make([]uint64, 0, max(len(p.Borders), len(p.Borders64), len(p.BordersI64)))
	for _, b := range p.Borders {
		keys = append(keys, key64(float64(b)))
	}
	for _, b := range p.Borders64 {
		keys = append(keys, key64(b))
	}
	for _, b := range p.BordersI64 {
		keys = append(keys, key64(float64(b)))
	}
	return keys
}

func keysInt64(p Params) []uint64 {
	keys := make([]uint64, len(p.BordersI64))
	for i, b := range p.BordersI64 {
		keys[i] = keyInt64(b)
	}
	return keys
}

// thresholds turns borders into the numbers whose count not above a value's key is the value's bucket, on either side
// and with equal borders: on the right these are the borders, on the left their successors, except that the first of
// several equal borders counts from the border itself, which is what TorchArrow's search arrives at. It reuses keys.
func thresholds[K uint32 | uint64](keys []K, side Side) []K {
	if side == SideRight {
		return keys
	}
	for i := 0; i < len(keys); {
		border, first := keys[i], i
		for i < len(keys) && keys[i] == border {
			i++
		}
		if border+1 == 0 {
			// Nothing lies above the largest int64: thresholds there are never reached and can go.
			if i-first > 1 {
				return keys[:first+1]
			}
			return keys[:first]
		}
		for j := first; j < i; j++ {
			keys[j] = border + 1
		}
		if i-first > 1 {
			keys[first] = border
		}
	}
	return keys
}
