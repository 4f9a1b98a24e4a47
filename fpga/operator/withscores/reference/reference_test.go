package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/withscores"
	"github.com/millrace/millrace/fpga/rowvalue"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	op, ids := withscores.Op{}, []any{int64(7), int64(5)}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: op, Inputs: []any{ids, []any{float32(2), float32(3)}},
			Want: rowvalue.ScoredList{IDs: ids, Scores: []float32{2, 3}}},
		{Op: op, Inputs: []any{ids, float32(4)}, Want: rowvalue.ScoredList{IDs: ids, Scores: []float32{4, 4}}},
		{Op: op, Inputs: []any{ids, []any{float32(2)}}, Fails: true},
		{Op: op, Inputs: []any{ids, []any{float32(2), nil}}, Want: rowvalue.ScoredList{}},
		{Op: op, Inputs: []any{nil, float32(4)}, Want: rowvalue.ScoredList{}},
	})
}
