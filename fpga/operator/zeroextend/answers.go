package zeroextend

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op := Op{}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{int64(-7)}, Want: int64(1<<32 - 7)},
		{Op: op, Inputs: []any{int64(1<<40 + 3)}, Want: int64(3)},
		{Op: op, Inputs: []any{nil}, Want: nil},
	}
}
