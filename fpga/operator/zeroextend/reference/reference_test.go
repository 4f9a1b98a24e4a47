package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/zeroextend"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	op := zeroextend.Op{}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: op, Inputs: []any{int64(-7)}, Want: int64(1<<32 - 7)},
		{Op: op, Inputs: []any{int64(1<<40 + 3)}, Want: int64(3)},
		{Op: op, Inputs: []any{nil}, Want: nil},
	})
}
