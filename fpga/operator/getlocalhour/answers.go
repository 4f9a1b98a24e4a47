package getlocalhour

import (
	"math"

	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	op := &Op{Starts: []int64{math.MinInt64, 0}, Offsets: []int64{0, 7200}}
	// Kathmandu's clocks have been 5:45 hours ahead of UTC since 1986, and 5:30 before.
	kathmandu := &Op{Starts: []int64{math.MinInt64, 504901800}, Offsets: []int64{19800, 20700}}
	return []rowvalue.Answer{
		{Op: kathmandu, Inputs: []any{int64(1700000000)}, Want: int64(3)},
		{Op: kathmandu, Inputs: []any{int64(-1)}, Want: int64(5)},
		{Op: op, Inputs: []any{int64(-1)}, Want: int64(23)},
		{Op: op, Inputs: []any{int64(0)}, Want: int64(2)},
		{Op: op, Inputs: []any{int64(86399)}, Want: int64(1)},
		{Op: op, Inputs: []any{nil}, Want: nil},
	}
}
