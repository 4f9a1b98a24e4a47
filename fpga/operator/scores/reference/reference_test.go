package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/scores"
	"github.com/millrace/millrace/fpga/rowvalue"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	op := scores.Op{}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: op, Inputs: []any{rowvalue.ScoredList{IDs: []any{int64(7), int64(5)}, Scores: []float32{2, 3}}},
			Want: []any{float32(2), float32(3)}},
		{Op: op, Inputs: []any{rowvalue.ScoredList{}}, Want: []any{}},
	})
}
