package positivemodulus

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op := Op{M: 5}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{int64(12)}, Want: int64(2)},
		{Op: op, Inputs: []any{int64(-7)}, Want: int64(3)},
		{Op: op, Inputs: []any{nil}, Want: nil},
	}
}
