package listlength

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op, lists := Op{}, []program.ValueType{{Kind: program.Int64, List: true}}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{[]any{int64(7), int64(5)}}, Want: int64(2)},
		{Op: op, Inputs: []any{[]any{}}, Types: lists, Want: int64(0)},
		{Op: op, Inputs: []any{nil}, Types: lists, Want: int64(0)},
		{Op: op, Inputs: []any{[]any{[]byte("a")}}, Want: int64(1)},
		{Op: op, Inputs: []any{[]any{float32(1), nil}}, Want: int64(0)},
		{Op: op, Inputs: []any{rowvalue.ScoredList{IDs: []any{int64(7), int64(8)}, Scores: []float32{1, 2}}},
			Want: int64(2)},
	}
}
