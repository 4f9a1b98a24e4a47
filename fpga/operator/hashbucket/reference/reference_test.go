package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/hashbucket"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	op := hashbucket.Op{Buckets: 1000}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: op, Inputs: []any{int64(1)}, Want: int64(789)},
		{Op: op, Inputs: []any{[]any{int64(-1), int64(0)}}, Want: []any{int64(67), int64(0)}},
		{Op: op, Inputs: []any{nil}, Want: nil},
	})
}
