package convert

import (
	"math"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	narrow, wide := Op{To: program.Float32}, Op{To: program.Float64}
	return []rowvalue.Answer{
		{Op: narrow, Inputs: []any{16777217.0}, Want: float32(16777216)},
		{Op: narrow, Inputs: []any{int64(16777219)}, Want: float32(16777220)},
		{Op: narrow, Inputs: []any{-math.NaN()}, Want: math.Float32frombits(0x7fc00000)},
		{Op: wide, Inputs: []any{int64(1<<53 + 1)}, Want: float64(1 << 53)},
		{Op: wide, Inputs: []any{float32(0.1)}, Want: float64(float32(0.1))},
		{Op: wide, Inputs: []any{nil}, Want: nil},
	}
}
