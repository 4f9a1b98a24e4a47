package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/decimal"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: decimal.Op{Scale: 2, To: program.Float32}, Inputs: []any{int64(-150)}, Want: float32(-1.5)},
		{Op: decimal.Op{Scale: 1, To: program.Float64}, Inputs: []any{[]byte{1, 0}}, Want: 25.6},
		{Op: decimal.Op{To: program.Int64}, Inputs: []any{[]byte{0xff}}, Want: int64(-1)},
		{Op: decimal.Op{To: program.Int64}, Inputs: []any{[]byte{1, 0, 0, 0, 0, 0, 0, 0, 0}}, Fails: true},
		{Op: decimal.Op{To: program.Int64}, Inputs: []any{[]byte{}}, Fails: true},
		{Op: decimal.Op{To: program.Int64}, Inputs: []any{make([]byte, 33)}, Fails: true},
		{Op: decimal.Op{To: program.Int64}, Inputs: []any{nil}, Want: nil},
	})
}
