package fillnull

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op := Op{Int: 9, Float: 0.1}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{nil}, Types: []program.ValueType{{Kind: program.Int64}}, Want: int64(9)},
		{Op: op, Inputs: []any{int64(3)}, Want: int64(3)},
		{Op: op, Inputs: []any{nil}, Types: []program.ValueType{{Kind: program.Float32}}, Want: float32(0.1)},
		{Op: op, Inputs: []any{nil}, Types: []program.ValueType{{Kind: program.Float64}}, Want: 0.1},
		{Op: op, Inputs: []any{[]any{int64(1), nil}}, Want: []any{int64(1), int64(9)}},
		{Op: op, Inputs: []any{nil}, Types: []program.ValueType{{Kind: program.Int64, List: true}}, Want: nil},
	}
}
