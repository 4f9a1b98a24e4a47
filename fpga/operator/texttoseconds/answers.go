package texttoseconds

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op, ahead := Op{}, Op{Assumes: true, Offset: 3600}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{[]byte("2021-05-21 02:11:51-07:00")}, Want: int64(1621588311)},
		{Op: ahead, Inputs: []any{[]byte("2021-05-21T02:11:51.9-07")}, Want: int64(1621588311)},
		{Op: ahead, Inputs: []any{[]byte("1970-01-01")}, Want: int64(-3600)},
		{Op: op, Inputs: []any{[]byte("1970-01-01")}, Fails: true},
		{Op: op, Inputs: []any{[]byte{}}, Want: nil},
		{Op: op, Inputs: []any{nil}, Want: nil},
		{Op: ahead, Inputs: []any{[]byte("1970-02-29")}, Fails: true},
	}
}
