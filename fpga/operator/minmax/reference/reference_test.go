package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/minmax"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: minmax.Op{Min: 1, Max: 5}, Inputs: []any{float32(3)}, Want: float32(0.5)},
		{Op: minmax.Op{Min: 1, Max: 5}, Inputs: []any{float32(-3)}, Want: float32(-1)},
		{Op: minmax.Op{Min: 1, Max: 1}, Inputs: []any{float32(3)}, Want: float32(0.5)},
		{Op: minmax.Op{Max: 1}, Inputs: []any{nil}, Want: nil},
	})
}
