package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/hextoint"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	op := hextoint.Op{}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: op, Inputs: []any{[]byte("1f")}, Want: int64(31)},
		{Op: op, Inputs: []any{[]byte("DEADBEEF")}, Want: int64(0xdeadbeef)},
		{Op: op, Inputs: []any{[]byte{}}, Want: nil},
		{Op: op, Inputs: []any{nil}, Want: nil},
		{Op: op, Inputs: []any{[]byte("0x1")}, Fails: true},
	})
}
