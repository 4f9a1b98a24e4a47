package idlisttransform

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op := Op{}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{[]any{int64(3), int64(2), int64(2)}, []any{int64(2), int64(3)}},
			Want: []any{int64(3), int64(2)}},
		{Op: op, Inputs: []any{int64(3), []any{int64(3), int64(4)}}, Want: []any{int64(3)}},
		{Op: op, Inputs: []any{int64(3), []any{int64(3), nil}}, Want: []any{}},
		{Op: op, Inputs: []any{nil, int64(3)}, Want: []any{}},
	}
}
