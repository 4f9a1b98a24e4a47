package normalize

import (
	"math"
	"math/big"
)

// Reference returns the normalized value of x.
func Reference(x float32, mean, deviation float64) float32 {
	switch {
	case x != x:
		return math.Float32frombits(0x7fc00000)
	case math.IsInf(float64(x), 0):
		return x
	}
	q := new(big.Rat).SetFloat64(float64(x))
	q.Sub(q, new(big.Rat).SetFloat64(mean))
	if deviation != 0 {
		q.Quo(q, new(big.Rat).SetFloat64(deviation))
	}
	nearest, _ := q.Float32()
	return nearest
}
