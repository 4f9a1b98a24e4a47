package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	list := []any{int64(1), int64(2), int64(3)}
	padded := program.ListSlice{End: 2, Padded: true, PadInt: 9, PadFloat: 0.5}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: program.ListSlice{Start: -2, End: program.NoEnd}, Inputs: []any{list}, Want: []any{int64(2), int64(3)}},
		{Op: program.ListSlice{Start: 1, End: -1}, Inputs: []any{list}, Want: []any{int64(2)}},
		{Op: program.ListSlice{End: 1}, Inputs: []any{[]any{int64(1), nil}}, Want: nil},
		{Op: program.ListSlice{End: 1}, Inputs: []any{nil}, Want: nil},
		{Op: padded, Inputs: []any{list}, Want: []any{int64(1), int64(2)}},
		{Op: padded, Inputs: []any{[]any{int64(1)}}, Want: []any{int64(1), int64(9)}},
		{Op: padded, Inputs: []any{[]any{int64(1), nil}}, Want: []any{int64(9), int64(9)}},
		{Op: padded, Inputs: []any{nil}, Types: []program.ValueType{{Kind: program.Float32, List: true}},
			Want: []any{float32(0.5), float32(0.5)}},
	})
}
