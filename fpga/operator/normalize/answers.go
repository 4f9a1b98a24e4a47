package normalize

import (
	"math"

	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	return []rowvalue.Answer{
		{Op: Op{Mean: 0.1, Deviation: 3}, Inputs: []any{float32(9)}, Want: math.Float32frombits(0x403dddde)}, // 8.9 / 3
		{Op: Op{Mean: 1, Deviation: 2}, Inputs: []any{float32(6)}, Want: float32(2.5)},
		{Op: Op{Mean: 1}, Inputs: []any{float32(6)}, Want: float32(5)},
		{Op: Op{Mean: 1}, Inputs: []any{nil}, Want: nil},
	}
}
