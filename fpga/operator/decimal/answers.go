package decimal

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	return []rowvalue.Answer{
		{Op: Op{Scale: 2, To: program.Float32}, Inputs: []any{[]byte{0x04, 0xd2}}, Want: float32(12.34)},
		{Op: Op{Scale: 2, To: program.Float32}, Inputs: []any{int64(-150)}, Want: float32(-1.5)},
		{Op: Op{Scale: 1, To: program.Float64}, Inputs: []any{[]byte{1, 0}}, Want: 25.6},
		{Op: Op{To: program.Int64}, Inputs: []any{[]byte{0xff}}, Want: int64(-1)},
		{Op: Op{To: program.Int64}, Inputs: []any{[]byte{1, 0, 0, 0, 0, 0, 0, 0, 0}}, Fails: true},
		{Op: Op{To: program.Int64}, Inputs: []any{[]byte{}}, Fails: true},
		{Op: Op{To: program.Int64}, Inputs: []any{make([]byte, 33)}, Fails: true},
		{Op: Op{To: program.Int64}, Inputs: []any{nil}, Want: nil},
	}
}
