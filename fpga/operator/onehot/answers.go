package onehot

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	ranges := Op{Classes: 2, Ranges: true, Lower: 0, Upper: 2}
	return []rowvalue.Answer{
		{Op: Op{Classes: 3}, Inputs: []any{int64(1)}, Want: []float32{0, 1, 0}},
		{Op: Op{Classes: 3}, Inputs: []any{int64(3)}, Want: []float32{0, 0, 0}},
		{Op: Op{Classes: 3}, Inputs: []any{nil}, Want: []float32{0, 0, 0}},
		{Op: ranges, Inputs: []any{float32(1.5)}, Want: []float32{0, 1}},
		{Op: ranges, Inputs: []any{float32(-1)}, Want: []float32{1, 0}},
		{Op: ranges, Inputs: []any{nil}, Want: []float32{0, 0}},
	}
}
