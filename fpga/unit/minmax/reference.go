package minmax

import (
	"math"
	"math/big"
)

// Reference returns the value of x between the bounds.
func Reference(x float32, low, high float64) float32 {
	infinite := math.IsInf(float64(x), 0)
	switch {
	case x != x, low == high && (x == 0 || infinite):
		return math.Float32frombits(0x7fc00000)
	case low == high:
		return 0.5
	case infinite:
		return x
	}
	exact := func(v float64) *big.Rat { return new(big.Rat).SetFloat64(v) }
	q := exact(float64(x))
	q.Sub(q, exact(low))
	span := exact(high)
	nearest, _ := q.Quo(q, span.Sub(span, exact(low))).Float32()
	return nearest
}
