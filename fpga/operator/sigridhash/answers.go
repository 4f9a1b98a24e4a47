package sigridhash

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op := Op{Max: 100}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{int64(1)}, Want: int64(60)},
		{Op: op, Inputs: []any{[]any{int64(14), int64(15), int64(16)}}, Want: []any{int64(83), int64(66), int64(2)}},
		{Op: op, Inputs: []any{[]any{int64(14), nil}}, Want: nil},
		{Op: op, Inputs: []any{nil}, Want: nil},
	}
}
