package cartesian

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	cut, all := Op{MaxLength: 1}, Op{MaxLength: 1, Overflow: Fail}
	return []rowvalue.Answer{
		{Op: cut, Inputs: []any{int64(2), int64(20)}, Want: int64(-7079278334846907209)},
		{Op: cut, Inputs: []any{int64(1), int64(10)}, Want: int64(-2166060444645670163)},
		{Op: cut, Inputs: []any{int64(1), nil}, Types: []program.ValueType{{Kind: program.Int64}, {Kind: program.Int64}},
			Want: nil},
		{Op: cut, Inputs: []any{[]any{int64(1), int64(2)}, int64(10)}, Want: []any{int64(-2166060444645670163)}},
		{Op: cut, Inputs: []any{int64(7), []any{int64(7)}}, Want: []any{int64(-7267561123229759680)}},
		{Op: all, Inputs: []any{[]any{int64(7)}, []any{int64(7)}}, Want: []any{int64(-7267561123229759680)}},
		{Op: all, Inputs: []any{[]any{int64(1), nil}, int64(10)}, Want: []any{}},
		{Op: all, Inputs: []any{[]any{int64(1), int64(2)}, int64(10)}, Fails: true},
	}
}
