package bucketize

import (
	"fmt"
	"math/bits"
)

// Float32 sets dst[i] to the bucket of src[i] for every i of src. dst must be at least as long as src. Errors are a
// *NaNError, with the rows before it done, and ErrCompare.
func (t *Table) Float32(dst []int64, src []float32) error { return bucketize(t, dst, src) }

// Float64 is Float32 for float64 values; under CompareFloat32 they are rounded to float32 first.
func (t *Table) Float64(dst []int64, src []float64) error { return bucketize(t, dst, src) }

// Int64 is Float32 for integers; under CompareFloat32 and CompareFloat64 they are rounded to that type first. dst may
// be src. It does not fail.
func (t *Table) Int64(dst, src []int64) error {
	if t.compare == CompareInt64 {
		integers(t, dst[:len(src)], src)
		return nil
	}
	return bucketize(t, dst, src)
}

func bucketize[V int64 | float32 | float64](t *Table, dst []int64, src []V) error {
	dst = dst[:len(src)]
	bad := -1
	switch x, y := &t.narrow, &t.wide; {
	case t.compare == CompareInt64:
		return fmt.Errorf("bucketize %d values of type %T: %w", len(src), *new(V), ErrCompare)
	case t.compare == CompareFloat32 && x.counts16 != nil:
		bad = floats32(t, x.counts16, dst, src)
	case t.compare == CompareFloat32:
		bad = floats32(t, x.counts32, dst, src)
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

// floats32 compares as float32. It returns the row of the first NaN that is an error, or -1. The three kernels differ
// in their keys; a function in their place would not be inlined.
func floats32[C uint16 | uint32, V int64 | float32 | float64](t *Table, counts []C, dst []int64, src []V) int {
	x := &t.narrow
	thresholds, regions, crowded := x.thresholds, x.regions, x.crowded
	low, high, shift := x.low, x.high, x.shift&31
	mask := uint32(1)<<shift - 1
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
		k := min(max(key, low), high)
		r := regions[(k-low)>>shift]
		c := r>>8 + uint64(k&mask>>(r&31))
		n := uint64(counts[c])
		if crowded {
			dst[i] = int64(between(thresholds, key, int(n), int(counts[c+1])))
			continue
		}
		// One more if the threshold is not above the key, without a branch: they would be as likely as not.
		dst[i] = int64(n + uint64(int64(thresholds[n])-int64(key)-1)>>63)
	}
	return -1
}

// floats64 is floats32 for a compare as float64.
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

func integersOf[C uint16 | uint32](x *index[uint64], counts []C, dst, src []int64) {
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
