package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/hashcross"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: hashcross.Op{Buckets: 1000}, Inputs: []any{int64(1), int64(2)}, Want: int64(191)},
		{Op: hashcross.Op{Buckets: 1_000_000_000}, Inputs: []any{int64(1), int64(2), int64(-3)}, Want: int64(743244448)},
		{Op: hashcross.Op{Buckets: 1000}, Inputs: []any{int64(1), nil}, Want: nil},
	})
}
