package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/unsignedmodulus"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	op := unsignedmodulus.Op{M: 10}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: op, Inputs: []any{int64(12)}, Want: int64(2)},
		{Op: op, Inputs: []any{int64(-1)}, Want: int64(5)}, // 18446744073709551615
		{Op: op, Inputs: []any{[]any{int64(-1), int64(-6)}}, Want: []any{int64(5), int64(0)}},
		{Op: op, Inputs: []any{nil}, Want: nil},
	})
}
