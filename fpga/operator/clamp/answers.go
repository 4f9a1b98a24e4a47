package clamp

import (
	"math"

	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	integers, reals := Op{IntLo: 0, IntHi: 5}, Op{FloatLo: 0, FloatHi: 2.5}
	return []rowvalue.Answer{
		{Op: integers, Inputs: []any{int64(-1)}, Want: int64(0)},
		{Op: integers, Inputs: []any{int64(5)}, Want: int64(5)},
		{Op: integers, Inputs: []any{int64(6)}, Want: int64(5)},
		{Op: integers, Inputs: []any{nil}, Want: nil},
		{Op: integers, Inputs: []any{[]any{int64(-9), int64(9)}}, Want: []any{int64(0), int64(5)}},
		{Op: integers, Inputs: []any{[]any{int64(-9), nil}}, Want: nil},
		{Op: reals, Inputs: []any{float32(-1.5)}, Want: float32(0)},
		{Op: reals, Inputs: []any{float32(math.Copysign(0, -1))}, Want: float32(math.Copysign(0, -1))},
		{Op: reals, Inputs: []any{math.NaN()}, Want: math.NaN()},
		{Op: reals, Inputs: []any{math.Inf(1)}, Want: 2.5},
	}
}
