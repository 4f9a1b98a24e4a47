package withscores

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op, ids := Op{}, []any{int64(7), int64(5)}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{ids, []any{float32(2), float32(3)}},
			Want: rowvalue.ScoredList{IDs: ids, Scores: []float32{2, 3}}},
		{Op: op, Inputs: []any{ids, float32(4)}, Want: rowvalue.ScoredList{IDs: ids, Scores: []float32{4, 4}}},
		{Op: op, Inputs: []any{ids, []any{float32(2)}}, Fails: true},
		{Op: op, Inputs: []any{ids, []any{float32(2), nil}}, Want: rowvalue.ScoredList{}},
		{Op: op, Inputs: []any{nil, float32(4)}, Want: rowvalue.ScoredList{}},
	}
}
