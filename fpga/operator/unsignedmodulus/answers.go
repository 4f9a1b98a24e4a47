package unsignedmodulus

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op := Op{M: 10}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{int64(12)}, Want: int64(2)},
		{Op: op, Inputs: []any{int64(-1)}, Want: int64(5)}, // 18446744073709551615
		{Op: op, Inputs: []any{[]any{int64(-1), int64(-6)}}, Want: []any{int64(5), int64(0)}},
		{Op: op, Inputs: []any{nil}, Want: nil},
	}
}
