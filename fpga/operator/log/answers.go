package log

import (
	"math"

	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op := Op{Add: 1}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{float32(0)}, Want: float32(0)},
		{Op: op, Inputs: []any{float32(9)}, Want: math.Float32frombits(0x40135d8e)},
		{Op: op, Inputs: []any{float32(-1)}, Want: float32(math.Inf(-1))},
		{Op: Op{Add: 0}, Inputs: []any{float32(9)}, Want: math.Float32frombits(0x400c9f54)},
		{Op: op, Inputs: []any{nil}, Want: nil},
	}
}
