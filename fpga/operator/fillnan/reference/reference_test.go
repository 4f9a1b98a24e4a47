package reference

import (
	"math"
	"testing"

	"github.com/millrace/millrace/fpga/operator/fillnan"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	op := fillnan.Op{Value: 7.5}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: op, Inputs: []any{float32(math.NaN())}, Want: float32(7.5)},
		{Op: op, Inputs: []any{math.NaN()}, Want: 7.5},
		{Op: op, Inputs: []any{math.Inf(-1)}, Want: math.Inf(-1)},
		{Op: op, Inputs: []any{nil}, Want: nil},
	})
}
