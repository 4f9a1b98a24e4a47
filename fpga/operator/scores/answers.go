package scores

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op := Op{}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{rowvalue.ScoredList{IDs: []any{int64(7), int64(5)}, Scores: []float32{2, 3}}},
			Want: []any{float32(2), float32(3)}},
		{Op: op, Inputs: []any{rowvalue.ScoredList{}}, Want: []any{}},
	}
}
