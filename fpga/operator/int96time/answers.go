package int96time

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	// 5,000,000,000 ns of a day, and the number of a day; day 2,440,588 is 1970-01-01.
	seconds, days := Op{To: Seconds}, Op{To: Days}
	return []rowvalue.Answer{
		{Op: seconds, Inputs: []any{[]byte{0, 0xf2, 5, 0x2a, 1, 0, 0, 0, 0x8d, 0x3d, 0x25, 0}}, Want: int64(86405)},
		{Op: days, Inputs: []any{[]byte{0, 0xf2, 5, 0x2a, 1, 0, 0, 0, 0x8b, 0x3d, 0x25, 0}}, Want: int64(-1)},
		{Op: seconds, Inputs: []any{nil}, Want: nil},
		{Op: seconds, Inputs: []any{make([]byte, 8)}, Fails: true},
	}
}
