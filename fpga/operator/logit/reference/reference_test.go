package reference

import (
	"math"
	"testing"

	"github.com/millrace/millrace/fpga/operator/logit"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	op := logit.Op{Eps: 0.25}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: op, Inputs: []any{float32(0.5)}, Want: float32(0)},
		{Op: op, Inputs: []any{float32(2)}, Want: float32(1.0986123)}, // ln 3
		{Op: op, Inputs: []any{float32(-2)}, Want: float32(-1.0986123)},
		{Op: logit.Op{Eps: -1}, Inputs: []any{float32(1)}, Want: float32(math.Inf(1))},
		{Op: op, Inputs: []any{nil}, Want: nil},
	})
}
