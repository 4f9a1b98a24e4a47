package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/float16"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	op := float16.Op{}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: op, Inputs: []any{[]byte{0, 0x3c}}, Want: float32(1)},
		{Op: op, Inputs: []any{[]any{[]byte{0, 0xc0}, nil}}, Want: []any{float32(-2), nil}},
		{Op: op, Inputs: []any{nil}, Want: nil},
		{Op: op, Inputs: []any{[]byte{0, 0x3c, 0}}, Fails: true},
	})
}
