package hextoint

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op := Op{}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{[]byte("1f")}, Want: int64(31)},
		{Op: op, Inputs: []any{[]byte("DEADBEEF")}, Want: int64(0xdeadbeef)},
		{Op: op, Inputs: []any{[]byte{}}, Want: nil},
		{Op: op, Inputs: []any{nil}, Want: nil},
		{Op: op, Inputs: []any{[]byte("0x1")}, Fails: true},
	}
}
