package reference

import (
	"math"
	"testing"

	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	op := log.Op{Add: 1}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: op, Inputs: []any{float32(0)}, Want: float32(0)},
		{Op: op, Inputs: []any{float32(9)}, Want: math.Float32frombits(0x40135d8e)},
		{Op: op, Inputs: []any{float32(-1)}, Want: float32(math.Inf(-1))},
		{Op: log.Op{Add: 0}, Inputs: []any{float32(9)}, Want: math.Float32frombits(0x400c9f54)},
		{Op: op, Inputs: []any{nil}, Want: nil},
	})
}
