package bucketize

import (
	"math"

	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	left := &Op{Borders32: []float32{1, 10}}
	right := &Op{Borders32: []float32{1, 10}, Side: Right, NaN: NaNLast}
	first := &Op{Borders64: []float64{0.25}, NaN: NaNFirst}
	return []rowvalue.Answer{
		{Op: left, Inputs: []any{float32(10)}, Want: int64(1)},
		{Op: right, Inputs: []any{float32(10)}, Want: int64(2)},
		{Op: left, Inputs: []any{float32(0)}, Want: int64(0)},
		{Op: left, Inputs: []any{float32(math.NaN())}, Want: int64(1)},
		{Op: right, Inputs: []any{float32(math.NaN())}, Want: int64(2)},
		{Op: first, Inputs: []any{math.NaN()}, Want: int64(0)},
		{Op: first, Inputs: []any{0.5}, Want: int64(1)},
		{Op: &Op{Borders32: []float32{1}, NaN: NaNError},
			Inputs: []any{float32(math.NaN())}, Fails: true},
		{Op: &Op{BordersInt: []int64{5}}, Inputs: []any{[]any{int64(5), int64(6)}},
			Want: []any{int64(0), int64(1)}},
		{Op: left, Inputs: []any{nil}, Want: nil},
	}
}
