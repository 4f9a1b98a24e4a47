package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/vocabulary"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	env := rowvalue.NewEnvironment(&program.Program{LookupTables: []program.LookupTable{{Listed: []int64{30, 10}},
		{Listed: []int64{1}}}})
	rowvaluetest.CheckIn(t, env, New, []rowvalue.Answer{
		{Op: vocabulary.Op{Base: 5}, Inputs: []any{int64(30)}, Want: int64(5)},
		{Op: vocabulary.Op{Base: 5}, Inputs: []any{[]any{int64(10), int64(30)}}, Want: []any{int64(6), int64(5)}},
		{Op: vocabulary.Op{Base: 5}, Inputs: []any{int64(1)}, Fails: true},
		{Op: vocabulary.Op{Base: 5, Table: 1}, Inputs: []any{int64(1)}, Want: int64(5)},
		{Op: vocabulary.Op{Base: 5, Absent: vocabulary.AbsentRare, Rare: 2}, Inputs: []any{int64(1)}, Want: int64(2)},
		{Op: vocabulary.Op{Base: 200, Absent: vocabulary.AbsentBucket, Buckets: 100}, Inputs: []any{int64(1)},
			Want: int64(160)},
		{Op: vocabulary.Op{Base: 5}, Inputs: []any{nil}, Want: nil},
	})
}
