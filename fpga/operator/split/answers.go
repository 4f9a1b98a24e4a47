package split

import (
	"bytes"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op, keep := Op{Separator: "|"}, Op{Separator: "|", Empty: KeepEmpty}
	texts := func(parts ...string) []any {
		list := make([]any, len(parts))
		for i, part := range parts {
			list[i] = []byte(part)
		}
		return list
	}
	text := []program.ValueType{{Kind: program.Bytes}}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{[]byte("Action|Comedy")}, Want: texts("Action", "Comedy")},
		{Op: op, Inputs: []any{[]byte("|a||b")}, Want: texts("a", "b")},
		{Op: keep, Inputs: []any{[]byte("|a||b")}, Want: texts("", "a", "", "b")},
		{Op: op, Inputs: []any{[]byte{}}, Want: texts()},
		{Op: keep, Inputs: []any{[]byte{}}, Want: texts("")},
		{Op: keep, Inputs: []any{nil}, Types: text, Want: texts()},
		{Op: Op{Separator: ", "}, Inputs: []any{[]byte("a,b, c")}, Want: texts("a,b", "c")},
		{Op: op, Inputs: []any{bytes.Repeat([]byte("a|"), MaxParts+1)}, Fails: true},
		{Op: keep, Inputs: []any{bytes.Repeat([]byte("|"), MaxParts)}, Fails: true},
	}
}
