package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/boxcox"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: boxcox.Op{Lambda1: 1}, Inputs: []any{float32(3)}, Want: float32(2)},
		{Op: boxcox.Op{Lambda1: 2, Lambda2: 1}, Inputs: []any{float32(2)}, Want: float32(4)},
		{Op: boxcox.Op{}, Inputs: []any{float32(1)}, Want: float32(0)},
		{Op: boxcox.Op{Lambda1: 1}, Inputs: []any{float32(-5)}, Want: float32(-0.999999)},
		{Op: boxcox.Op{Lambda1: 1, Mode: boxcox.RAP}, Inputs: []any{float32(-5)}, Want: float32(-5)},
		{Op: boxcox.Op{}, Inputs: []any{nil}, Want: nil},
	})
}
