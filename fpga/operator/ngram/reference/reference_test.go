package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/ngram"
	"github.com/millrace/millrace/fpga/rowvalue"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	list, long := []any{int64(1), int64(2), int64(3)}, rowvalue.List(make([]int64, ngram.MaxIDs/2+2))
	fold, rap := ngram.Op{N: 2}, ngram.Op{N: 2, Mode: ngram.RAP}
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: fold, Inputs: []any{list}, Want: []any{int64(-5286723046509945304), int64(-5814142665615228097)}},
		{Op: fold, Inputs: []any{[]any{int64(1)}}, Want: []any{}},
		{Op: rap, Inputs: []any{list}, Want: []any{int64(1), int64(2), int64(2), int64(3)}},
		{Op: rap, Inputs: []any{[]any{int64(1)}}, Want: []any{int64(1)}},
		{Op: rap, Inputs: []any{long}, Fails: true},
		{Op: fold, Inputs: []any{[]any{int64(1), nil}}, Want: nil},
		{Op: fold, Inputs: []any{nil}, Want: nil},
	})
}
