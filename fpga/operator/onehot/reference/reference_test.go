package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/onehot"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	ranges := onehot.Op{Classes: 2, Ranges: true, Lower: 0, Upper: 2}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: onehot.Op{Classes: 3}, Inputs: []any{int64(1)}, Want: []float32{0, 1, 0}},
		{Op: onehot.Op{Classes: 3}, Inputs: []any{int64(3)}, Want: []float32{0, 0, 0}},
		{Op: onehot.Op{Classes: 3}, Inputs: []any{nil}, Want: []float32{0, 0, 0}},
		{Op: ranges, Inputs: []any{float32(1.5)}, Want: []float32{0, 1}},
		{Op: ranges, Inputs: []any{float32(-1)}, Want: []float32{1, 0}},
		{Op: ranges, Inputs: []any{nil}, Want: []float32{0, 0}},
	})
}
