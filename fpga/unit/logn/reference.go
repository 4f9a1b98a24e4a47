package logn

import (
	"math"
	"math/big"
)

// prec is the precision, in bits, that Reference works with: far more than the 58 that decide.
const prec = 200

// Reference returns the float32 nearest to ln(float32(x + add)), by a series in math/big.
func Reference(x, add float32) float32 {
	y := x + add
	switch {
	case y != y || y < 0:
		return math.Float32frombits(0x7fc00000)
	case y == 0:
		return float32(math.Inf(-1))
	case math.IsInf(float64(y), 1):
		return y
	}
	f, _ := bigLog(float64(y)).Float32()
	return f
}

// bigLog returns ln y for a positive finite y: with y = m 2^k and m in [1/2, 1), it is ln m + k ln 2.
func bigLog(y float64) *big.Float {
	m, k := math.Frexp(y)
	sum := newBig().SetInt64(int64(k))
	sum.Mul(sum, bigLogOf(2))
	return sum.Add(sum, bigLogOf(m))
}

// bigLogOf returns ln m = 2 (s + s^3/3 + s^5/5 + ...), s = (m-1)/(m+1).
func bigLogOf(m float64) *big.Float {
	one, x := newBig().SetInt64(1), newBig().SetFloat64(m)
	s := newBig().Quo(newBig().Sub(x, one), newBig().Add(x, one))
	square := newBig().Mul(s, s)
	sum, power := newBig(), newBig().Set(s)
	for n := int64(1); power.Sign() != 0 && power.MantExp(nil) > -2*prec; n += 2 {
		sum.Add(sum, newBig().Quo(power, newBig().SetInt64(n)))
		power.Mul(power, square)
	}
	return sum.Mul(sum, newBig().SetInt64(2))
}

func newBig() *big.Float { return new(big.Float).SetPrec(prec) }
