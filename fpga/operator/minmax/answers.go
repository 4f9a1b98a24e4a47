package minmax

import (
	"math"

	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	return []rowvalue.Answer{
		{Op: Op{Min: -0.75, Max: 2.25}, Inputs: []any{float32(0.25)}, Want: math.Float32frombits(0x3eaaaaab)}, // 1/3
		{Op: Op{Min: 1, Max: 5}, Inputs: []any{float32(3)}, Want: float32(0.5)},
		{Op: Op{Min: 1, Max: 5}, Inputs: []any{float32(-3)}, Want: float32(-1)},
		{Op: Op{Min: 1, Max: 1}, Inputs: []any{float32(3)}, Want: float32(0.5)},
		{Op: Op{Max: 1}, Inputs: []any{nil}, Want: nil},
	}
}
