package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/idlisttransform"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	op := idlisttransform.Op{}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: op, Inputs: []any{[]any{int64(3), int64(2), int64(2)}, []any{int64(2), int64(3)}},
			Want: []any{int64(3), int64(2)}},
		{Op: op, Inputs: []any{int64(3), []any{int64(3), int64(4)}}, Want: []any{int64(3)}},
		{Op: op, Inputs: []any{int64(3), []any{int64(3), nil}}, Want: []any{}},
		{Op: op, Inputs: []any{nil, int64(3)}, Want: []any{}},
	})
}
