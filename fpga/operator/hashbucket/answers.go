package hashbucket

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator. pandas' hash of 1 is 6238072747940578789, and that of 2 is
// 15839785061582574730.
func Answers() []rowvalue.Answer {
	op := Op{Buckets: 1000}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{int64(2)}, Want: int64(730)},
		{Op: op, Inputs: []any{int64(1)}, Want: int64(789)},
		{Op: op, Inputs: []any{[]any{int64(-1), int64(0)}}, Want: []any{int64(67), int64(0)}},
		{Op: op, Inputs: []any{nil}, Want: nil},
	}
}
