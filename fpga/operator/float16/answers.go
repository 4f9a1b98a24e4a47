package float16

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op := Op{}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{[]byte{0x01, 0x80}}, Want: float32(-0x1p-24)},
		{Op: op, Inputs: []any{[]byte{0, 0x3c}}, Want: float32(1)},
		{Op: op, Inputs: []any{[]any{[]byte{0, 0xc0}, nil}}, Want: []any{float32(-2), nil}},
		{Op: op, Inputs: []any{nil}, Want: nil},
		{Op: op, Inputs: []any{[]byte{0, 0x3c, 0}}, Fails: true},
	}
}
