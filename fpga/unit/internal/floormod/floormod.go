// Package floormod divides by a number known beforehand without a division instruction.
//
// # Plain Go
//
// Divisor.Mod multiplies by a reciprocal of 64 bits; see Divisor.
//
// # Vectors
//
// The assembly of the units multiplies by the reciprocal in float64 and takes the nearest multiple of d away:
//
//	q = round(float64(x) * Inverse)    r = x - q d    r + d where r is negative
//
// float64(x) is x but for 2^-53 of it, Inverse is 1/d but for 2^-52 of it (d is rounded, then the quotient), and either
// the product or the sum that rounds it to an integer adds at most 2^-53. With |x| <= 2^63 the quotient before rounding
// is off by 2^63/d (2^-53 + 2^-52 + 2^-53) = 2^12/d at most.
//
// Wide divisors, d >= WideFrom = 2^14: off by 1/4, and 1/2 by rounding, so that |r| <= 3/4 d, which one addition mends.
// q is below 2^49, so that adding 1.5 2^52 rounds it and leaves it in the low bits. q d and r are computed modulo 2^64,
// which is enough.
//
// Small divisors, with AVX-512 and NEON: the first step leaves |r| < (2^12/d + 1) d <= 2^14, so that a second, whose
// quotient is off by less than 2^-30, leaves |r| <= d/2.
//
// Small divisors, with AVX2, which has no conversion of 64-bit integers: with x = high 2^32 + low, 0 <= low < 2^32, the
// remainder of high, |r| <= d/2, then that of r 2^32 + low, below 2^46: all of it is exact in float64.
//
// Divisors are immutable and may be shared by goroutines. Nothing here fails: New and NewUnsigned are given a divisor
// that their caller has checked.
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
	shift uint8 // The high half of m*a is shifted by it: 63+l-64.
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

// WideFrom is the least divisor for which vectors take one step; see the package's overview.
const WideFrom = 1 << 14

// D returns the divisor.
func (v Divisor) D() uint64 { return v.d }

// Reciprocal returns what kernels multiply by in general registers, as Mod does, and the bits by which they shift the
// upper half of the product.
func (v Divisor) Reciprocal() (m, shift uint64) { return v.m, uint64(v.shift) }

// Inverse returns 1/d as vectors multiply by it.
func (v Divisor) Inverse() float64 { return 1 / float64(v.d) }

// Unsigned computes the remainders of unsigned numbers of 64 bits by one d, 1 <= d <= 2^63-1. A number's highest bit is
// divided apart from its other 63, whose remainder a Divisor computes.
type Unsigned struct {
	low     Divisor // It divides by a d above 1.
	d       uint64
	topRest uint64 // 2^63 mod d
}

// NewUnsigned returns the divisor d, which must be in [1, 2^63-1].
func NewUnsigned(d int64) Unsigned {
	u := Unsigned{d: uint64(d), topRest: 1 << 63 % uint64(d)}
	if d > 1 {
		u.low = New(d)
	}
	return u
}

// Reduce sets dst[i] to the remainder of the 64 bits of src[i]. Both have the same length. dst may be src.
func (u Unsigned) Reduce(dst, src []int64) {
	if u.d == 1 {
		clear(dst)
		return
	}
	src = src[:len(dst)]
	for i, x := range src {
		rest := uint64(u.low.Mod(int64(uint64(x) &^ (1 << 63))))
		rest += u.topRest & uint64(x>>63)
		if rest >= u.d {
			rest -= u.d
		}
		dst[i] = int64(rest)
	}
}
