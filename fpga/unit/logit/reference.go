package logit

import (
	"math"

	"github.com/millrace/millrace/fpga/unit/internal/bigreal"
)

// Reference returns the float32 nearest to ln(t / (1 - t)), where t is x clamped to [eps, 1 - eps] if eps is not below
// zero, by series in math/big.
func Reference(x, eps float32) float32 {
	t := x
	if eps >= 0 {
		upper := 1 - eps
		if x < eps {
			t = eps
		}
		if x > upper {
			t = upper
		}
	}
	switch {
	case t != t || t < 0 || t > 1:
		return math.Float32frombits(0x7fc00000)
	case t == 0:
		return float32(math.Inf(-1))
	case t == 1:
		return float32(math.Inf(1))
	}
	exact := bigreal.Of(float64(t))
	odds := bigreal.New().Quo(exact, bigreal.New().Sub(bigreal.Of(1), exact))
	f, _ := bigreal.Ln(odds).Float32()
	return f
}
