package decimal

import "math"

// maxPower is the largest power of ten that fits 64 bits.
const maxPower = 19

var powersOfTen = [maxPower + 1]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14,
	1e15, 1e16, 1e17, 1e18, 1e19}

// maxExactPower is the largest power of ten that is a float64, and maxExactInteger bounds the integers that all are.
const (
	maxExactPower   = 22
	maxExactInteger = 1 << 53
)

var exactPowers = [maxExactPower + 1]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13,
	1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// isExact reports whether n and 10^scale both are float64.
func isExact(n int64, scale uint8) bool {
	return n >= -maxExactInteger && n <= maxExactInteger && scale <= maxExactPower
}

// wideOfInt64 returns an int64 as 256 bits.
func wideOfInt64(n int64) wide {
	sign := uint64(n >> 63)
	return wide{uint64(n), sign, sign, sign}
}

// float64Of returns the float64 nearest to n / 10^scale.
func float64Of(n int64, scale uint8) float64 {
	if isExact(n, scale) {
		return float64(n) / exactPowers[scale]
	}
	return wideOfInt64(n).float64(scale)
}

// float32Of returns the float32 nearest to n / 10^scale.
func float32Of(n int64, scale uint8) float32 {
	if isExact(n, scale) {
		// The quotient is 0 or a normal float32. Its second rounding errs only where the first one has made a tie: the
		// 29 bits that a float32 lacks are then 1 and zeros.
		x := float64(n) / exactPowers[scale]
		if math.Float64bits(x)&(1<<29-1) != 1<<28 {
			return float32(x)
		}
	}
	return wideOfInt64(n).float32(scale)
}
