package enumerate

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op := Op{}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{[]any{int64(7), int64(5)}},
			Want: rowvalue.ScoredList{IDs: []any{int64(7), int64(5)}, Scores: []float32{0, 1}}},
		{Op: op, Inputs: []any{int64(7)}, Want: rowvalue.ScoredList{IDs: []any{int64(7)}, Scores: []float32{0}}},
		{Op: op, Inputs: []any{nil}, Want: rowvalue.ScoredList{}},
	}
}
