package bfloat16

import (
	"math"
	"math/big"
)

// ReferenceRound returns the bits of the bfloat16 nearest to x. Of two that are equally near it returns the one whose
// last bit is 0. An infinity counts as the bfloat16 that would follow the largest one. Every NaN becomes NaN.
func ReferenceRound(x float32) uint16 {
	if math.IsNaN(float64(x)) {
		return NaN
	}
	// Cutting the lower half off gives the neighbour towards 0; the other one has the next greater bits.
	inner := uint16(math.Float32bits(x) >> 16)
	if math.IsInf(float64(x), 0) {
		return inner
	}
	outer := inner + 1
	// exact reads an infinity as the number that its exponent would mean in a wider format.
	exact := func(bits uint16) *big.Float {
		exponent, fraction := int(bits>>7&0xff), int64(bits&0x7f)
		if exponent == 0 {
			exponent = 1
		} else {
			fraction += 1 << 7
		}
		return new(big.Float).SetMantExp(new(big.Float).SetInt64(fraction), exponent-127-7)
	}
	value := big.NewFloat(math.Abs(float64(x)))
	below := new(big.Float).Sub(value, exact(inner))
	above := new(big.Float).Sub(exact(outer), value)
	switch below.Cmp(above) {
	case -1:
		return inner
	case 1:
		return outer
	}
	if inner%2 == 0 {
		return inner
	}
	return outer
}
