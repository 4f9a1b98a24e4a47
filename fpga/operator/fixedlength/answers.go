package fixedlength

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	exact, pads := Op{Length: 2}, Op{Length: 2, Pads: true, Pad: -1}
	return []rowvalue.Answer{
		{Op: exact, Inputs: []any{[]any{float32(1), float32(2)}}, Want: []float32{1, 2}},
		{Op: exact, Inputs: []any{[]any{float32(1)}}, Fails: true},
		{Op: exact, Inputs: []any{nil}, Fails: true},
		{Op: pads, Inputs: []any{[]any{float32(1)}}, Want: []float32{1, -1}},
		{Op: pads, Inputs: []any{[]any{float32(1), nil}}, Want: []float32{-1, -1}},
		{Op: pads, Inputs: []any{nil}, Want: []float32{-1, -1}},
		{Op: pads, Inputs: []any{[]any{float32(1), float32(2), float32(3)}}, Fails: true},
	}
}
