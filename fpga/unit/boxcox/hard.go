package boxcox

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/millrace/millrace/fpga/unit/internal/floatpair"
)

// power is the function (t^lambda - 1) / lambda, lambda not 0, with values that depend on lambda alone.
type power struct {
	lambda float32
	limit  float32 // the function's limit as t goes to infinity
	// lambda is numerator / 2^roots, in lowest terms.
	numerator int64
	roots     int
}

func newPower(lambda float32) power {
	p := power{lambda: lambda}
	if lambda == 0 {
		return p
	}
	p.limit = float32(math.Inf(1))
	if lambda < 0 {
		p.limit = float32(-1 / float64(lambda)) // 1/lambda is never near the middle of two float32
	}
	fraction, exponent := math.Frexp(float64(lambda))
	p.numerator, exponent = int64(math.Ldexp(fraction, 24)), exponent-24
	for exponent < 0 && p.numerator&1 == 0 {
		p.numerator, exponent = p.numerator/2, exponent+1
	}
	p.roots = max(-exponent, 0)
	if exponent > 0 {
		// A whole lambda beyond 24 bits; every t but 1 then overflows, or its power vanishes.
		p.numerator = int64(math.Ldexp(float64(p.numerator), min(exponent, 32)))
	}
	return p
}

const (
	// decisive bounds the error of pairPower, relative to its value.
	decisive = 0x1p-80

	// Where |lambda ln t| is greater, the result overflows or is -1/lambda as far as rounding can tell.
	greatest = 400
)

// hard returns the float32 nearest to (t^lambda - 1) / lambda, t positive, finite and not 1.
func (p *power) hard(t float32) float32 {
	value := p.pairPower(t)
	nearest, middle, decided := value.Round32(decisive)
	if decided || p.isMiddle(t, middle) {
		return tiesToEven(nearest, middle, decided)
	}
	if p.exceeds(t, middle) == (middle > float64(nearest)) {
		return other(nearest, middle)
	}
	return nearest
}

// tiesToEven returns nearest if it was decided, else which of the two float32 around middle is even.
func tiesToEven(nearest float32, middle float64, decided bool) float32 {
	if decided || math.Float32bits(nearest)&1 == 0 {
		return nearest
	}
	return other(nearest, middle)
}

// other returns the float32 on the other side of middle.
func other(x float32, middle float64) float32 {
	direction := math.Inf(1)
	if middle < float64(x) {
		direction = math.Inf(-1)
	}
	return math.Nextafter32(x, float32(direction))
}

// pairPower returns (t^lambda - 1) / lambda.
func (p *power) pairPower(t float32) floatpair.Pair {
	lambda := floatpair.Pair{Hi: float64(p.lambda)}
	y := floatpair.Log(floatpair.Pair{Hi: float64(t)}).Times(lambda)
	if y.Hi > greatest {
		return floatpair.Pair{Hi: math.Copysign(math.MaxFloat64, lambda.Hi)}
	}
	if y.Hi < -greatest {
		return floatpair.Pair{Hi: -1, Lo: 0x1p-110}.Over(lambda)
	}
	return floatpair.Expm1(y).Over(lambda)
}

// isMiddle reports whether (t^lambda - 1) / lambda is exactly middle: whether t^lambda is r = 1 + lambda middle. With
// t = u 2^i and r = v 2^j, u and v odd, and lambda = n / 2^k, that is u^n 2^(i n) = v^(2^k) 2^(j 2^k).
func (p *power) isMiddle(t float32, middle float64) bool {
	if p.lambda == 2 { // many integers t give a middle: a fast form of what follows
		r := floatpair.Sum(1, 2*middle)
		return r.Lo == 0 && r.Hi == float64(t)*float64(t)
	}
	r := new(big.Float).SetPrec(1000).SetFloat64(middle)
	r.Mul(r, new(big.Float).SetFloat64(float64(p.lambda)))
	r.Add(r, new(big.Float).SetInt64(1)) // exact: the bits of both lie between 2^-300 and 2^300
	// A float32 other than 1 is no 2^8-th power.
	if r.Sign() <= 0 || p.roots > 7 {
		return false
	}
	u, i := odd(new(big.Float).SetFloat64(float64(t)))
	v, j := odd(r)
	twos := new(big.Int).Mul(big.NewInt(i), big.NewInt(p.numerator))
	if twos.Cmp(new(big.Int).Lsh(big.NewInt(j), uint(p.roots))) != 0 {
		return false
	}
	if u.BitLen() == 1 || v.BitLen() == 1 {
		return u.BitLen() == v.BitLen()
	}
	// A negative power of an odd number is not a fraction of two. A high one has more bits than v to the 2^k.
	most := int64(v.BitLen()) << p.roots
	if p.numerator < 0 || bits.Len64(uint64(p.numerator)) > 40 || p.numerator > most {
		return false
	}
	u.Exp(u, big.NewInt(p.numerator), nil)
	v.Exp(v, big.NewInt(1<<p.roots), nil)
	return u.Cmp(v) == 0
}

// odd returns the odd integer u and i of x = u 2^i, x positive.
func odd(x *big.Float) (u *big.Int, i int64) {
	mantissa := new(big.Float)
	exponent := x.MantExp(mantissa)
	length := int(mantissa.MinPrec())
	mantissa.SetMantExp(mantissa, length)
	u, _ = mantissa.Int(nil)
	return u, int64(exponent - length)
}

// exceeds reports whether (t^lambda - 1) / lambda, which is not middle, is above it, by lambda ln t and
// ln (1 + lambda middle) in math/big with as many bits as that takes.
func (p *power) exceeds(t float32, middle float64) bool {
	for precision := uint(256); ; precision *= 2 {
		number := func(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }
		lambda := number(float64(p.lambda))
		r := number(middle)
		r.Add(r.Mul(r, lambda), number(1))
		if r.Sign() <= 0 {
			return p.lambda > 0 // t^lambda is above r
		}
		y := logarithm(number(float64(t)))
		difference := y.Sub(y.Mul(y, lambda), logarithm(r))
		if difference.Sign() != 0 && difference.MantExp(nil) > 64-int(precision) {
			return (difference.Sign() > 0) == (p.lambda > 0)
		}
	}
}

// logarithm returns ln x, x positive. Square roots bring x near 1: ln x = 2^n ln x^(1/2^n), and
// ln z = -(w + w^2/2 + w^3/3 + ...) with w = 1 - z.
func logarithm(x *big.Float) *big.Float {
	precision := x.Prec()
	number := func() *big.Float { return new(big.Float).SetPrec(2 * precision) }
	z, roots := number().Set(x), 0
	w := number()
	for {
		w.Sub(number().SetInt64(1), z)
		if w.Sign() == 0 || w.MantExp(nil) <= -16 {
			break
		}
		z.Sqrt(z)
		roots++
	}
	sum, term := number(), number().SetInt64(1)
	for n := int64(1); n == 1 || term.Sign() != 0 && term.MantExp(nil) > -2*int(precision); n++ {
		term.Mul(term, w)
		sum.Sub(sum, number().Quo(term, number().SetInt64(n)))
	}
	return new(big.Float).SetPrec(precision).SetMantExp(sum, roots)
}
