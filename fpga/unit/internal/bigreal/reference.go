// Package bigreal has logarithms and exponentials in math/big, for the references of units: slow, and as the textbook
// has them. No kernel uses it.
package bigreal

import "math/big"

// precision is the precision of all results in bits.
const precision = 320

// New returns a zero with the precision of this package.
func New() *big.Float { return new(big.Float).SetPrec(precision) }

// Of returns a finite float64.
func Of(x float64) *big.Float { return New().SetFloat64(x) }

// Ln returns the natural logarithm of a positive x, good to 2^-300 of it. With x = m 2^k and m in [1/2, 1), it is
// ln m + k ln 2, where 0 < m. For x in [1/2, 2] the series is taken for x itself, so that nothing cancels near 1.
func Ln(x *big.Float) *big.Float {
	if x.Cmp(Of(0.5)) >= 0 && x.Cmp(Of(2)) <= 0 {
		return lnNearOne(x)
	}
	m := New()
	k := x.MantExp(m)
	sum := New().Mul(New().SetInt64(int64(k)), lnNearOne(Of(2)))
	return sum.Add(sum, lnNearOne(m))
}

// lnNearOne returns ln m = 2 (s + s^3/3 + s^5/5 + ...), s = (m-1)/(m+1).
func lnNearOne(m *big.Float) *big.Float {
	one := Of(1)
	s := New().Quo(New().Sub(m, one), New().Add(m, one))
	square, sum, power := New().Mul(s, s), New(), New().Set(s)
	for n := int64(1); power.Sign() != 0 && power.MantExp(nil) > s.MantExp(nil)-precision; n += 2 {
		sum.Add(sum, New().Quo(power, New().SetInt64(n)))
		power.Mul(power, square)
	}
	return sum.Mul(sum, Of(2))
}

// Exp returns e^y, |y| < 2^20, good to 2^-280 of it: with y = z 2^s and |z| < 1/16, the series of z, squared s times.
func Exp(y *big.Float) *big.Float {
	z, squarings := New().Set(y), 0
	for z.Sign() != 0 && z.MantExp(nil) > -4 {
		z.Quo(z, Of(2))
		squarings++
	}
	sum, term := Of(1), Of(1)
	for n := int64(1); term.Sign() != 0 && term.MantExp(nil) > -precision; n++ {
		term.Mul(term, z)
		term.Quo(term, New().SetInt64(n))
		sum.Add(sum, term)
	}
	for range squarings {
		sum.Mul(sum, sum)
	}
	return sum
}
