package fillnan

import "math"

// These constants are the bits of a positive infinity. The bits of a NaN without its sign are greater.
const (
	infinity32 = 0x7f800000
	infinity64 = 0x7ff0000000000000
)

// blockValues is the number of values that are tested together: the loop over a block has no branch.
const blockValues = 64

// Float32 sets v[i] to fill wherever v[i] is a NaN; the bits of every other value are kept.
func Float32(v []float32, fill float32) {
	for len(v) > 0 {
		block := v[:min(len(v), blockValues)]
		if anyAbove(block, infinity32) {
			for i, x := range block {
				if x != x {
					block[i] = fill
				}
			}
		}
		v = v[len(block):]
	}
}

// Float64 sets v[i] to fill wherever v[i] is a NaN; the bits of every other value are kept.
func Float64(v []float64, fill float64) {
	for len(v) > 0 {
		block := v[:min(len(v), blockValues)]
		above := uint64(0)
		for _, x := range block {
			above |= infinity64 - math.Float64bits(x)&^(1<<63)
		}
		if above>>63 != 0 {
			for i, x := range block {
				if x != x {
					block[i] = fill
				}
			}
		}
		v = v[len(block):]
	}
}

// FindNaN returns the index of the first NaN, or -1.
func FindNaN(v []float32) int { return findAbove(v, infinity32) }

// FindNonFinite returns the index of the first NaN or infinity, or -1.
func FindNonFinite(v []float32) int { return findAbove(v, infinity32-1) }

// findAbove returns the index of the first value whose bits without the sign are above a limit, or -1.
func findAbove(v []float32, limit uint32) int {
	for at := 0; at < len(v); at += blockValues {
		block := v[at:min(len(v), at+blockValues)]
		if !anyAbove(block, limit) {
			continue
		}
		for i, x := range block {
			if math.Float32bits(x)&^(1<<31) > limit {
				return at + i
			}
		}
	}
	return -1
}

// anyAbove reports whether the bits of any value without the sign are above a limit.
func anyAbove(v []float32, limit uint32) bool {
	above, other := uint32(0), uint32(0)
	for ; len(v) >= 4; v = v[4:] {
		above |= (limit - math.Float32bits(v[0])&^(1<<31)) | (limit - math.Float32bits(v[1])&^(1<<31))
		other |= (limit - math.Float32bits(v[2])&^(1<<31)) | (limit - math.Float32bits(v[3])&^(1<<31))
	}
	for _, x := range v {
		above |= limit - math.Float32bits(x)&^(1<<31)
	}
	return (above|other)>>31 != 0
}
