package reference

import (
	"math"
	"testing"

	"github.com/millrace/millrace/fpga/operator/rescale"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: rescale.Op{Multiplier: 1, Divisor: 1000}, Inputs: []any{int64(-1)}, Want: int64(-1)},
		{Op: rescale.Op{Multiplier: 86400, Divisor: 1}, Inputs: []any{int64(-2)}, Want: int64(-172800)},
		{Op: rescale.Op{Multiplier: 2, Divisor: 1}, Inputs: []any{int64(math.MaxInt64)}, Fails: true},
		{Op: rescale.Op{Multiplier: 1, Divisor: 1}, Inputs: []any{nil}, Want: nil},
	})
}
