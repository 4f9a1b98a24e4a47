package bfloat16

import "math"

// NaN is what every NaN becomes.
const NaN = 0x7fc0

// Round returns the bits of the bfloat16 nearest to x, ties to even, and NaN for every NaN.
func Round(x float32) uint16 {
	if x != x {
		return NaN
	}
	bits := math.Float32bits(x)
	// Half a unit of the last place, less one where that place is even: a tie carries only into an odd place.
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
