package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	op := positivemodulus.Op{M: 5}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: op, Inputs: []any{int64(12)}, Want: int64(2)},
		{Op: op, Inputs: []any{int64(-7)}, Want: int64(3)},
		{Op: op, Inputs: []any{nil}, Want: nil},
	})
}
