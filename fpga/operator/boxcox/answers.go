package boxcox

import (
	"math"

	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	return []rowvalue.Answer{
		{Op: Op{Lambda1: 0.5}, Inputs: []any{float32(0.25)}, Want: float32(-1)},                // 2 (sqrt x - 1)
		{Op: Op{Mode: RAP}, Inputs: []any{float32(9)}, Want: math.Float32frombits(0x400c9f54)}, // 2 ln 3
		{Op: Op{Lambda1: 1}, Inputs: []any{float32(3)}, Want: float32(2)},
		{Op: Op{Lambda1: 2, Lambda2: 1}, Inputs: []any{float32(2)}, Want: float32(4)},
		{Op: Op{}, Inputs: []any{float32(1)}, Want: float32(0)},
		{Op: Op{Lambda1: 1}, Inputs: []any{float32(-5)}, Want: float32(-0.999999)},
		{Op: Op{Lambda1: 1, Mode: RAP}, Inputs: []any{float32(-5)}, Want: float32(-5)},
		{Op: Op{}, Inputs: []any{nil}, Want: nil},
	}
}
