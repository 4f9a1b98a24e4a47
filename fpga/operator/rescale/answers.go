package rescale

import (
	"math"

	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	return []rowvalue.Answer{
		{Op: Op{Multiplier: 1, Divisor: 1000}, Inputs: []any{int64(-1)}, Want: int64(-1)},
		{Op: Op{Multiplier: 86400, Divisor: 1}, Inputs: []any{int64(-2)}, Want: int64(-172800)},
		{Op: Op{Multiplier: 2, Divisor: 1}, Inputs: []any{int64(math.MaxInt64)}, Fails: true},
		{Op: Op{Multiplier: 1, Divisor: 1}, Inputs: []any{nil}, Want: nil},
	}
}
