package hashcross

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	return []rowvalue.Answer{
		{Op: Op{Buckets: 1000}, Inputs: []any{int64(2), int64(1)}, Want: int64(191)},
		{Op: Op{Buckets: 1000}, Inputs: []any{int64(1), int64(1)}, Want: int64(0)},
		{Op: Op{Buckets: 1000}, Inputs: []any{int64(1), int64(2)}, Want: int64(191)},
		{Op: Op{Buckets: 1_000_000_000}, Inputs: []any{int64(1), int64(2), int64(-3)}, Want: int64(743244448)},
		{Op: Op{Buckets: 1000}, Inputs: []any{int64(1), nil}, Want: nil},
	}
}
