package maptext

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op := func(unknown Unknown, other int64) *Op {
		return &Op{Keys: []string{"", "no", "yes"}, Values: []int64{-3, 0, 1}, Unknown: unknown, Default: other}
	}
	fails, falls, nulls := op(UnknownFails, 0), op(UnknownDefault, 9), op(UnknownNull, 0)
	return []rowvalue.Answer{
		{Op: fails, Inputs: []any{[]byte("yes")}, Want: int64(1)},
		{Op: fails, Inputs: []any{[]byte{}}, Want: int64(-3)},
		{Op: fails, Inputs: []any{[]any{[]byte("no"), []byte("yes")}}, Want: []any{int64(0), int64(1)}},
		{Op: fails, Inputs: []any{[]byte("Yes")}, Fails: true},
		{Op: falls, Inputs: []any{[]byte("yes ")}, Want: int64(9)},
		{Op: falls, Inputs: []any{nil}, Want: nil},
		{Op: nulls, Inputs: []any{[]byte("maybe")}, Want: nil},
		{Op: nulls, Inputs: []any{[]any{[]byte("no"), []byte("maybe")}}, Want: []any{int64(0), nil}},
		{Op: nulls, Inputs: []any{[]any{[]byte("no"), nil}}, Want: nil},
	}
}
