package toy

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op := Op{Times: 3, Plus: 7}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{int64(5)}, Want: int64(22)},
		{Op: op, Inputs: []any{int64(1) << 62}, Want: int64(-1)<<62 + 7},
		{Op: op, Inputs: []any{[]any{int64(0), int64(-7)}}, Want: []any{int64(7), int64(-14)}},
		{Op: op, Inputs: []any{nil}, Want: nil},
	}
}
