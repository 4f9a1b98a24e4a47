package bucketize

import (
	"fmt"
	"math/bits"
)

// Float32 sets dst[i] to the bucket of src[i] for every i of src. dst must be at least as long as src. Errors are a
// *NaNError, with the rows before it done, and ErrCompare.
func (t *Table) Float32(dst []int64, src []float32) error {
	return bucketize(t, dst, src, narrowFloat32.Pick())
}

// Float64 is Float32 for float64 values; under CompareFloat32 they are rounded to float32 first.
func (t *Table) Float64(dst []int64, src []float64) error {
	return bucketize(t, dst, src, narrowFloat64.Pick())
}

// Int64 is Float32 for integers; under CompareFloat32 and CompareFloat64 they are rounded to that type first. dst may
// be src. It does not fail.
func (t *Table) Int64(dst, src []int64) error {
	if t.compare == CompareInt64 {
		integers(t, dst[:len(src)], src)
		return nil
	}
	return bucketize(t, dst, src, narrowInt64.Pick())
}

func bucketize[V int64 | float32 | float64](t *Table, dst []int64, src []V,
	narrow func(t *Table, dst []int64, src []V) int) error {
	dst = dst[:len(src)]
	bad := -1
	switch y := &t.wide; {
	case t.compare == CompareInt64:
		return fmt.Errorf("bucketize %d values of type %T: %w", len(src), *new(V), ErrCompare)
	case t.compare == CompareFloat32:
		bad = narrow(t, dst, src)
	case y.counts16 != nil:
		bad = floats64(t, y.counts16, dst, src)
	default:
		bad = floats64(t, y.counts32, dst, src)
	}
	if bad >= 0 {
		return &NaNError{Row: bad}
	}
	return nil
}

// narrowGeneric compares as float32. It returns the row of the first NaN that is an error, or -1.
func narrowGeneric[V int64 | float32 | float64](t *Table, dst []int64, src []V) int {
	x := &t.narrow
	several, rough := x.steps > 1, x.steps > mostSteps
	thresholds := x.thresholds
	for i, value := range src {
		v := float32(value)
		if v != v {
			if t.nan == NaNFail {
				return i
			}
			dst[i] = t.nanTo
			continue
		}
		key := key32(v)
		at := x.place(key)
		n := (x.cells[at] + uint64(key)) >> 32
		if rough {
			n = x.search(key, at)
		} else if several {
			for thresholds[n] <= key {
				n++
			}
		}
		dst[i] = int64(n)
	}
	return -1
}

// floats64 compares as float64, likewise.
func floats64[C uint16 | uint32, V int64 | float32 | float64](t *Table, counts []C, dst []int64, src []V) int {
	x := &t.wide
	thresholds, regions, crowded := x.thresholds, x.regions, x.crowded
	low, high, shift := x.low, x.high, x.shift&31
	mask := uint32(1)<<shift - 1
	for i, value := range src {
		v := float64(value)
		if v != v {
			if t.nan == NaNFail {
				return i
			}
			dst[i] = t.nanTo
			continue
		}
		key := key64(v)
		k := min(max(coarseFloat64(key), low), high)
		r := regions[(k-low)>>shift]
		c := r>>8 + uint64(k&mask>>(r&31))
		n := uint64(counts[c])
		if crowded {
			dst[i] = int64(between(thresholds, key, int(n), int(counts[c+1])))
			continue
		}
		_, below := bits.Sub64(key, thresholds[n], 0)
		dst[i] = int64(n + 1 - below)
	}
	return -1
}

// integers compares as int64.
func integers(t *Table, dst, src []int64) {
	x := &t.wide
	switch {
	case len(x.thresholds) == 0:
		clear(dst)
	case x.counts16 != nil:
		integersOf(x, x.counts16, dst, src)
	default:
		integersOf(x, x.counts32, dst, src)
	}
}

func integersOf[C uint16 | uint32](x *index, counts []C, dst, src []int64) {
	thresholds, regions, crowded := x.thresholds, x.regions, x.crowded
	low, high, shift := x.low, x.high, x.shift&31
	mask := uint32(1)<<shift - 1
	for i, v := range src {
		key := keyInt64(v)
		k := min(max(coarseInt64(key), low), high)
		r := regions[(k-low)>>shift]
		c := r>>8 + uint64(k&mask>>(r&31))
		n := uint64(counts[c])
		if crowded {
			dst[i] = int64(between(thresholds, key, int(n), int(counts[c+1])))
			continue
		}
		_, below := bits.Sub64(key, thresholds[n], 0)
		dst[i] = int64(n + 1 - below)
	}
}
