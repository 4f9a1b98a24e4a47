// Package floormod divides by a number known beforehand without a division instruction.
//
// A Divisor is immutable and may be shared by goroutines. Nothing here fails: New is given a divisor that its caller
// has checked.
package floormod

import "math/bits"

// Divisor computes floorMod(x, d) for one d, 2 <= d <= 2^63-1, exactly for every int64 x.
//
// The method is Granlund and Montgomery's ("Division by Invariant Integers using Multiplication", PLDI 1994) for
// 63-bit dividends: with l = ceil(log2 d) and m = ceil(2^(63+l)/d), m fits 64 bits and a/d = (m*a) >> (63+l) for
// every a below 2^63. A negative x is folded onto its complement, which is not negative: floorMod(x, d) =
// d - 1 - (^x mod d).
type Divisor struct {
	d     uint64
	m     uint64
	shift uint8 // of the high half of m*a: 63+l-64
}

// New returns the divisor d. d must be in [2, 2^63-1]: for 1, whose remainders are all 0, m would not fit.
func New(d int64) Divisor {
	u := uint64(d)
	l := bits.Len64(u - 1) // ceil(log2 u), 1..63
	// 2^(63+l) is hi:0 with hi = 2^(l-1) < u, so that the quotient fits 64 bits.
	q, r := bits.Div64(1<<(l-1), 0, u)
	if r != 0 {
		q++
	}
	return Divisor{d: u, m: q, shift: uint8(l - 1)}
}

// Mod returns floorMod(x, d), in [0, d).
func (v Divisor) Mod(x int64) int64 {
	sign := uint64(x >> 63)
	a := uint64(x) ^ sign
	q, _ := bits.Mul64(v.m, a)
	q >>= v.shift & 63
	r := a - q*v.d
	return int64((r ^ sign) + v.d&sign)
}
