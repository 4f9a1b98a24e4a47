package mapid

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	sparse := &Op{Keys: []int64{10, 20}, Values: []int64{1, 2}, Default: -1}
	dense := &Op{Values: []int64{9, 8}, Default: -1}
	return []rowvalue.Answer{
		{Op: &Op{Keys: []int64{-5, 10}, Values: []int64{2, 1}, Default: 9}, Inputs: []any{int64(-5)}, Want: int64(2)},
		{Op: sparse, Inputs: []any{int64(20)}, Want: int64(2)},
		{Op: sparse, Inputs: []any{int64(15)}, Want: int64(-1)},
		{Op: dense, Inputs: []any{int64(1)}, Want: int64(8)},
		{Op: dense, Inputs: []any{[]any{int64(-1), int64(2)}}, Want: []any{int64(-1), int64(-1)}},
		{Op: dense, Inputs: []any{nil}, Want: nil},
	}
}
