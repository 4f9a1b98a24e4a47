package float16

import "math"

// Reference returns the float32 of a binary16: (-1)^sign * 2^(exponent-15) * (1 + fraction/1024), or for the exponent 0
// (-1)^sign * 2^-14 * fraction/1024; for the exponent 31 an infinity, or a NaN with the same sign and bits.
func Reference(half uint16) float32 {
	exponent, fraction := int(half)>>10&31, int(half)&1023
	magnitude := math.Ldexp(float64(1024+fraction), exponent-15-10)
	switch {
	case exponent == 31 && fraction > 0:
		return math.Float32frombits(uint32(half)>>15<<31 | 0x7f800000 | uint32(fraction)*8192)
	case exponent == 31:
		magnitude = math.Inf(1)
	case exponent == 0:
		magnitude = math.Ldexp(float64(fraction), -24)
	}
	if half >= 0x8000 {
		magnitude = math.Copysign(magnitude, -1)
	}
	return float32(magnitude)
}
