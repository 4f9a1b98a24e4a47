package firstx

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	return []rowvalue.Answer{
		{Op: Op{N: 1}, Inputs: []any{[]any{int64(1), int64(2)}}, Want: []any{int64(1)}},
		{Op: Op{N: 3}, Inputs: []any{[]any{int64(1), int64(2)}}, Want: []any{int64(1), int64(2)}},
		{Op: Op{N: 1}, Inputs: []any{[]any{int64(1), nil}}, Want: nil}, // even behind those that are kept
		{Op: Op{N: 1}, Inputs: []any{nil}, Want: nil},
	}
}
