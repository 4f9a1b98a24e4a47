package ngram

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	list, long := []any{int64(1), int64(2), int64(3)}, rowvalue.List(make([]int64, MaxIDs/2+2))
	fold, rap := Op{N: 2}, Op{N: 2, Mode: RAP}
	return []rowvalue.Answer{
		{Op: fold, Inputs: []any{list}, Want: []any{int64(-5286723046509945304), int64(-5814142665615228097)}},
		{Op: fold, Inputs: []any{[]any{int64(1)}}, Want: []any{}},
		{Op: rap, Inputs: []any{list}, Want: []any{int64(1), int64(2), int64(2), int64(3)}},
		{Op: rap, Inputs: []any{[]any{int64(1)}}, Want: []any{int64(1)}},
		{Op: rap, Inputs: []any{long}, Fails: true},
		{Op: fold, Inputs: []any{[]any{int64(1), nil}}, Want: nil},
		{Op: fold, Inputs: []any{nil}, Want: nil},
	}
}
