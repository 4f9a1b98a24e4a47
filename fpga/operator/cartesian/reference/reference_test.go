package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/cartesian"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	cut, all := cartesian.Op{MaxLength: 1}, cartesian.Op{MaxLength: 1, Overflow: cartesian.Fail}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: cut, Inputs: []any{int64(1), int64(10)}, Want: int64(-2166060444645670163)},
		{Op: cut, Inputs: []any{int64(1), nil}, Types: []program.ValueType{{Kind: program.Int64}, {Kind: program.Int64}},
			Want: nil},
		{Op: cut, Inputs: []any{[]any{int64(1), int64(2)}, int64(10)}, Want: []any{int64(-2166060444645670163)}},
		{Op: cut, Inputs: []any{int64(7), []any{int64(7)}}, Want: []any{int64(-7267561123229759680)}},
		{Op: all, Inputs: []any{[]any{int64(7)}, []any{int64(7)}}, Want: []any{int64(-7267561123229759680)}},
		{Op: all, Inputs: []any{[]any{int64(1), nil}, int64(10)}, Want: []any{}},
		{Op: all, Inputs: []any{[]any{int64(1), int64(2)}, int64(10)}, Fails: true},
	})
}
