package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/normalize"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: normalize.Op{Mean: 1, Deviation: 2}, Inputs: []any{float32(6)}, Want: float32(2.5)},
		{Op: normalize.Op{Mean: 1}, Inputs: []any{float32(6)}, Want: float32(5)},
		{Op: normalize.Op{Mean: 1}, Inputs: []any{nil}, Want: nil},
	})
}
