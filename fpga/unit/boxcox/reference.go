package boxcox

import (
	"math"
	"math/big"

	"github.com/millrace/millrace/fpga/unit/internal/bigreal"
)

// Reference returns the transform of one value, by series in math/big.
func Reference(x float32, p Params) float32 {
	if math.IsNaN(float64(x)) {
		return math.Float32frombits(0x7fc00000)
	}
	t := x
	if p.Mode == RAP {
		if x <= 0 {
			return x
		}
	} else {
		t = max(x+p.Lambda2, 1e-6)
	}
	lambda := float64(p.Lambda1)
	switch {
	case t == 1 && lambda < 0:
		return float32(math.Copysign(0, -1))
	case t == 1:
		return 0
	case math.IsInf(float64(t), 1) && lambda < 0:
		limit, _ := bigreal.New().Quo(bigreal.Of(-1), bigreal.Of(lambda)).Float32()
		return limit
	case math.IsInf(float64(t), 1):
		return t
	}
	logarithm := bigreal.Ln(bigreal.Of(float64(t)))
	if lambda == 0 {
		f, _ := logarithm.Float32()
		return f
	}
	y := bigreal.New().Mul(logarithm, bigreal.Of(lambda))
	// Beyond these the power is too great for any float32, or too small to be seen beside 1.
	if y.Cmp(bigreal.Of(1000)) > 0 {
		return float32(math.Copysign(math.Inf(1), lambda))
	}
	power := bigreal.New()
	if y.Cmp(bigreal.Of(-1000)) > 0 {
		power = bigreal.Exp(y)
	}
	value := power.Sub(power, bigreal.Of(1))
	value.Quo(value, bigreal.Of(lambda))
	return round(value)
}

// round returns the float32 nearest to a value that is good to 2^-200. A value nearer than that to the middle of two
// float32 counts as the middle, and is rounded to the even one.
func round(value *big.Float) float32 {
	f, _ := new(big.Float).SetPrec(200).Set(value).Float32()
	return f
}
