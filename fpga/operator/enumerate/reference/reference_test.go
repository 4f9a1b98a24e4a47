package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/enumerate"
	"github.com/millrace/millrace/fpga/rowvalue"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	op := enumerate.Op{}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: op, Inputs: []any{[]any{int64(7), int64(5)}},
			Want: rowvalue.ScoredList{IDs: []any{int64(7), int64(5)}, Scores: []float32{0, 1}}},
		{Op: op, Inputs: []any{int64(7)}, Want: rowvalue.ScoredList{IDs: []any{int64(7)}, Scores: []float32{0}}},
		{Op: op, Inputs: []any{nil}, Want: rowvalue.ScoredList{}},
	})
}
