package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: program.BoxCox{Lambda1: 1}, Inputs: []any{float32(3)}, Want: float32(2)},
		{Op: program.BoxCox{Lambda1: 2, Lambda2: 1}, Inputs: []any{float32(2)}, Want: float32(4)},
		{Op: program.BoxCox{}, Inputs: []any{float32(1)}, Want: float32(0)},
		{Op: program.BoxCox{Lambda1: 1}, Inputs: []any{float32(-5)}, Want: float32(-0.999999)},
		{Op: program.BoxCox{Lambda1: 1, Mode: program.BoxCoxRAP}, Inputs: []any{float32(-5)}, Want: float32(-5)},
		{Op: program.BoxCox{}, Inputs: []any{nil}, Want: nil},
	})
}
