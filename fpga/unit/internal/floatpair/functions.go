package floatpair

import "math"

// ln 2 to 2^-107.
const (
	ln2High = 0x1.62e42fefa39efp-1
	ln2Low  = 0x1.abc9e3b39803fp-56
)

// atanhTerms is the number of terms that Atanh adds. The terms that it leaves out are below 2^-100 of the value
// where |s| <= 0.1716.
const atanhTerms = 20

// Atanh returns the inverse hyperbolic tangent of s, |s| <= 0.1716: s + s^3/3 + s^5/5 + ...
func Atanh(s Pair) Pair {
	square := s.Times(s)
	var sum Pair
	for n := 2*atanhTerms - 1; n > 0; n -= 2 {
		sum = Quotient(1, float64(n)).Plus(sum.Times(square))
	}
	return sum.Times(s)
}

// Log returns the natural logarithm of a positive finite pair whose first half is a normal float64.
func Log(x Pair) Pair {
	mantissa, exponent := math.Frexp(x.Hi)
	if mantissa < math.Sqrt2/2 {
		mantissa, exponent = 2*mantissa, exponent-1
	}
	low := math.Ldexp(x.Lo, -exponent)
	// ln m = 2 atanh((m-1)/(m+1)).
	numerator, denominator := Sum(mantissa, -1), Sum(mantissa, 1)
	numerator, denominator = numerator.Plus(Pair{low, 0}), denominator.Plus(Pair{low, 0})
	logarithm := Atanh(numerator.Over(denominator)).Scaled(2)
	return Pair{ln2High, ln2Low}.Scaled(float64(exponent)).Plus(logarithm)
}

const (
	halvings = 8 // number of times that Expm1 halves its argument before the series
	expTerms = 10
)

// Expm1 returns e^y - 1, |y| <= 700, to 2^-85 of it.
func Expm1(y Pair) Pair {
	k := math.RoundToEven(y.Hi / ln2High)
	r := y.Minus(Pair{ln2High, ln2Low}.Scaled(k))
	r = Pair{math.Ldexp(r.Hi, -halvings), math.Ldexp(r.Lo, -halvings)}
	// r + r^2/2 + r^3/6 + ... by Horner's rule: r (1 + r/2 (1 + r/3 (...))).
	sum := Pair{1, 0}
	for n := expTerms; n > 1; n-- {
		sum = Pair{1, 0}.Plus(sum.Times(r).Over(Pair{float64(n), 0}))
	}
	u := sum.Times(r)
	for range halvings {
		u = u.Times(Pair{2, 0}.Plus(u)) // (1+u)^2 - 1
	}
	if k == 0 {
		return u
	}
	scale := math.Ldexp(1, int(k))
	return u.Scaled(scale).Plus(Sum(scale, -1))
}
