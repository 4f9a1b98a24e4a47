package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/fixedlength"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	exact, pads := fixedlength.Op{Length: 2}, fixedlength.Op{Length: 2, Pads: true, Pad: -1}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: exact, Inputs: []any{[]any{float32(1), float32(2)}}, Want: []float32{1, 2}},
		{Op: exact, Inputs: []any{[]any{float32(1)}}, Fails: true},
		{Op: exact, Inputs: []any{nil}, Fails: true},
		{Op: pads, Inputs: []any{[]any{float32(1)}}, Want: []float32{1, -1}},
		{Op: pads, Inputs: []any{[]any{float32(1), nil}}, Want: []float32{-1, -1}},
		{Op: pads, Inputs: []any{nil}, Want: []float32{-1, -1}},
		{Op: pads, Inputs: []any{[]any{float32(1), float32(2), float32(3)}}, Fails: true},
	})
}
