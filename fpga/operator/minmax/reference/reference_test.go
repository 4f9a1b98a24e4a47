package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: program.MinMax{Min: 1, Max: 5}, Inputs: []any{float32(3)}, Want: float32(0.5)},
		{Op: program.MinMax{Min: 1, Max: 5}, Inputs: []any{float32(-3)}, Want: float32(-1)},
		{Op: program.MinMax{Min: 1, Max: 1}, Inputs: []any{float32(3)}, Want: float32(0.5)},
		{Op: program.MinMax{Max: 1}, Inputs: []any{nil}, Want: nil},
	})
}
