package reference

import (
	"math"
	"testing"

	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	left := &bucketize.Op{Borders32: []float32{1, 10}}
	right := &bucketize.Op{Borders32: []float32{1, 10}, Side: bucketize.Right, NaN: bucketize.NaNLast}
	first := &bucketize.Op{Borders64: []float64{0.25}, NaN: bucketize.NaNFirst}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: left, Inputs: []any{float32(10)}, Want: int64(1)},
		{Op: right, Inputs: []any{float32(10)}, Want: int64(2)},
		{Op: left, Inputs: []any{float32(0)}, Want: int64(0)},
		{Op: left, Inputs: []any{float32(math.NaN())}, Want: int64(1)},
		{Op: right, Inputs: []any{float32(math.NaN())}, Want: int64(2)},
		{Op: first, Inputs: []any{math.NaN()}, Want: int64(0)},
		{Op: first, Inputs: []any{0.5}, Want: int64(1)},
		{Op: &bucketize.Op{Borders32: []float32{1}, NaN: bucketize.NaNError},
			Inputs: []any{float32(math.NaN())}, Fails: true},
		{Op: &bucketize.Op{BordersInt: []int64{5}}, Inputs: []any{[]any{int64(5), int64(6)}},
			Want: []any{int64(0), int64(1)}},
		{Op: left, Inputs: []any{nil}, Want: nil},
	})
}
