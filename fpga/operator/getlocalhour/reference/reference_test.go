package reference

import (
	"math"
	"testing"

	"github.com/millrace/millrace/fpga/operator/getlocalhour"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	op := &getlocalhour.Op{Starts: []int64{math.MinInt64, 0}, Offsets: []int64{0, 7200}}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: op, Inputs: []any{int64(-1)}, Want: int64(23)},
		{Op: op, Inputs: []any{int64(0)}, Want: int64(2)},
		{Op: op, Inputs: []any{int64(86399)}, Want: int64(1)},
		{Op: op, Inputs: []any{nil}, Want: nil},
	})
}
