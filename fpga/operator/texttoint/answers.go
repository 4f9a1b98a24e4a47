package texttoint

import (
	"math"

	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op := Op{}
	return []rowvalue.Answer{
		{Op: op, Inputs: []any{[]byte("-123")}, Want: int64(-123)},
		{Op: op, Inputs: []any{[]byte("+5")}, Want: int64(5)},
		{Op: op, Inputs: []any{[]byte("9223372036854775807")}, Want: int64(math.MaxInt64)},
		{Op: op, Inputs: []any{[]byte("9223372036854775808")}, Fails: true},
		{Op: op, Inputs: []any{[]byte{}}, Want: nil},
		{Op: op, Inputs: []any{nil}, Want: nil},
		{Op: op, Inputs: []any{[]byte("1.0")}, Fails: true},
	}
}
