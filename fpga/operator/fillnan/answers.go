package fillnan

import (
	"math"

	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op := Op{Value: 7.5}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{float32(math.NaN())}, Want: float32(7.5)},
		{Op: op, Inputs: []any{math.NaN()}, Want: 7.5},
		{Op: op, Inputs: []any{math.Inf(-1)}, Want: math.Inf(-1)},
		{Op: op, Inputs: []any{nil}, Want: nil},
	}
}
