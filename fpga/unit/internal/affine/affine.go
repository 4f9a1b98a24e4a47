// Package affine computes (x - a) / b for float32 numbers x, rounded once: the kernel of normalize and min_max.
//
// b may be a difference of two float64, which a float64 does not hold exactly; a Map keeps it as a sum of two. The
// kernel divides in float64, whose error is below 2^-50 of the quotient, and takes the float32 of both ends of that
// error if they are one number. Otherwise the exact quotient is compared with the middle between the two, in numbers of
// math/big, unless the float64 quotient is exact, as it is where b is a power of two.
package affine

import (
	"math"
	"math/big"
)

// Map is x -> (x - a) / b.
type Map struct {
	a        float64
	b, bRest float64 // their sum is b
}

// New returns the map of a subtrahend, and the divisor plus - minus, above 0. The numbers are InRange.
func New(a, plus, minus float64) Map {
	b, rest := sum(plus, -minus)
	if a == 0 {
		a = math.Copysign(0, -1) // a difference of -0 and 0 would be -0, and of -0 and -0 is 0
	}
	return Map{a: a, b: b, bRest: rest}
}

// InRange reports whether a constant is 0 or in the range of normal float32 numbers, where the kernel is exact.
func InRange(x float64) bool {
	return x == 0 || math.Abs(x) >= 0x1p-126 && math.Abs(x) <= math.MaxFloat32
}

// sum returns the rounded sum of two numbers, and what rounding lost (Knuth's TwoSum).
func sum(x, y float64) (s, lost float64) {
	s = x + y
	z := s - x
	return s, (x - (s - z)) + (y - z)
}

const (
	margin  = 0x1p-50
	notANaN = 0x7fc00000 // the NaN that arithmetic makes
)

// Apply sets dst[i] to the value at src[i] for every i of src. dst must be at least as long as src and may be src.
func (m *Map) Apply(dst, src []float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		q := (float64(x) - m.a) / m.b
		low, high := float32(q*(1-margin)), float32(q*(1+margin))
		if low != high {
			low = m.decide(x, q, low, high)
		}
		dst[i] = low
	}
}

// decide returns the result for a quotient near the middle between two float32 numbers, or a quotient that is no
// number.
func (m *Map) decide(x float32, q float64, one, other float32) float32 {
	if q != q {
		return math.Float32frombits(notANaN)
	}
	d, lost := sum(float64(x), -m.a)
	if lost == 0 && m.bRest == 0 && math.FMA(-q, m.b, d) == 0 {
		return float32(q)
	}
	middle := (finite(one) + finite(other)) / 2
	// The sign of x - a - middle * b says on which side of the middle the quotient lies.
	exact := func(v float64) *big.Float { return new(big.Float).SetPrec(exactBits).SetFloat64(v) }
	b := exact(m.b)
	b.Add(b, exact(m.bRest))
	s := exact(float64(x))
	s.Sub(s, exact(m.a)).Sub(s, b.Mul(b, exact(middle)))
	low, high := min(one, other), max(one, other)
	switch s.Sign() {
	case -1:
		return low
	case 1:
		return high
	}
	return float32(middle) // ties to even
}

// exactBits are more bits than sums and products of float64 numbers in the range of normal float32 numbers have.
const exactBits = 1024

// finite returns a float32 number, and for an infinity the number that would follow the greatest one.
func finite(x float32) float64 {
	if math.IsInf(float64(x), 0) {
		return math.Copysign(0x1p128, float64(x))
	}
	return float64(x)
}
