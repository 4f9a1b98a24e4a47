package logit

import (
	"math"

	"github.com/millrace/millrace/fpga/unit/internal/floatpair"
)

// decisive bounds the error of pairLogit, relative to its value.
const decisive = 0x1p-88

// hard returns the float32 nearest to the logit of t, which is a float32 between 0 and 1. The sweep in the tests
// looks for a logit so near to the middle of two float32 that pairLogit cannot decide it, and has found none.
func hard(t float64) float32 {
	nearest, _, _ := pairLogit(t).Round32(decisive)
	return nearest
}

// pairLogit returns ln(t / (1 - t)).
func pairLogit(t float64) floatpair.Pair {
	if d := 2*t - 1; math.Abs(d) <= 1./6 {
		return floatpair.Atanh(floatpair.Pair{Hi: d}).Scaled(2)
	}
	rest := floatpair.Sum(1, -t)
	return floatpair.Log(floatpair.Pair{Hi: t}.Over(rest))
}
