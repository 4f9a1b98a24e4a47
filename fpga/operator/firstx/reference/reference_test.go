package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: firstx.Op{N: 1}, Inputs: []any{[]any{int64(1), int64(2)}}, Want: []any{int64(1)}},
		{Op: firstx.Op{N: 3}, Inputs: []any{[]any{int64(1), int64(2)}}, Want: []any{int64(1), int64(2)}},
		{Op: firstx.Op{N: 1}, Inputs: []any{[]any{int64(1), nil}}, Want: nil}, // even behind those that are kept
		{Op: firstx.Op{N: 1}, Inputs: []any{nil}, Want: nil},
	})
}
