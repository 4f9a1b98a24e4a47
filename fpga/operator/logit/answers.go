package logit

import (
	"math"

	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op := Op{Eps: 0.25}
	return []rowvalue.Answer{
		{Op: Op{Eps: -1}, Inputs: []any{float32(9)}, Want: float32(math.NaN())},
		{Op: op, Inputs: []any{float32(0.5)}, Want: float32(0)},
		{Op: op, Inputs: []any{float32(2)}, Want: float32(1.0986123)}, // ln 3
		{Op: op, Inputs: []any{float32(-2)}, Want: float32(-1.0986123)},
		{Op: Op{Eps: -1}, Inputs: []any{float32(1)}, Want: float32(math.Inf(1))},
		{Op: op, Inputs: []any{nil}, Want: nil},
	}
}
