package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/mapid"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	sparse := &mapid.Op{Keys: []int64{10, 20}, Values: []int64{1, 2}, Default: -1}
	dense := &mapid.Op{Values: []int64{9, 8}, Default: -1}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: sparse, Inputs: []any{int64(20)}, Want: int64(2)},
		{Op: sparse, Inputs: []any{int64(15)}, Want: int64(-1)},
		{Op: dense, Inputs: []any{int64(1)}, Want: int64(8)},
		{Op: dense, Inputs: []any{[]any{int64(-1), int64(2)}}, Want: []any{int64(-1), int64(-1)}},
		{Op: dense, Inputs: []any{nil}, Want: nil},
	})
}
