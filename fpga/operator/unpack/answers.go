package unpack

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op := Op{Type: Float32}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{[]byte("\x00\x00\x80\x3f\x00\x00\x00\x40")}, Want: []any{float32(1), float32(2)}},
		{Op: op, Inputs: []any{[]byte{}}, Want: []any{}},
		{Op: op, Inputs: []any{nil}, Types: []program.ValueType{{Kind: program.Bytes}}, Want: []any{}},
		{Op: op, Inputs: []any{[]byte("\x00\x00\x80")}, Fails: true},
		{Op: op, Inputs: []any{[]byte("\x93NUMPY\x01\x00")}, Fails: true},
	}
}
