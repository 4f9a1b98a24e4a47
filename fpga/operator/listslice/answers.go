package listslice

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	list := []any{int64(1), int64(2), int64(3)}
	padded := Op{End: 2, Padded: true, PadInt: 9, PadFloat: 0.5}
	return []rowvalue.Answer{
		{Op: Op{Start: -2, End: NoEnd}, Inputs: []any{list}, Want: []any{int64(2), int64(3)}},
		{Op: Op{Start: 1, End: -1}, Inputs: []any{list}, Want: []any{int64(2)}},
		{Op: Op{End: 1}, Inputs: []any{[]any{int64(1), nil}}, Want: nil},
		{Op: Op{End: 1}, Inputs: []any{nil}, Want: nil},
		{Op: padded, Inputs: []any{list}, Want: []any{int64(1), int64(2)}},
		{Op: padded, Inputs: []any{[]any{int64(1)}}, Want: []any{int64(1), int64(9)}},
		{Op: padded, Inputs: []any{[]any{int64(1), nil}}, Want: []any{int64(9), int64(9)}},
		{Op: padded, Inputs: []any{nil}, Types: []program.ValueType{{Kind: program.Float32, List: true}},
			Want: []any{float32(0.5), float32(0.5)}},
	}
}
