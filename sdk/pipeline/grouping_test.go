package pipeline_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// TestErrorsAreGroupedByCause: what is wrong with many columns alike is said once.
func TestErrorsAreGroupedByCause(t *testing.T) {
	var schema []columntypes.Column
	for i := range 26 {
		schema = append(schema, columntypes.Column{Name: fmt.Sprintf("C%d", i+1), Kind: program.Bytes, Nullable: true})
	}
	for i := range 13 {
		schema = append(schema, columntypes.Column{Name: fmt.Sprintf("I%d", i+1), Kind: program.Int64, Nullable: true})
	}
	s, err := pipeline.Parse([]byte("dense: [{columns: [I1..I13]}]\nsparse: [{columns: [C1..C26], ops: [fill_null: 0]}]"))
	require.NoError(t, err)
	_, err = resolve.Pipeline(s, schema)
	require.EqualError(t, err, "pipeline: line 2:37: sparse[0].ops[0]: columns C1..C26: wrong type of column: "+
		"fill_null takes numbers, "+
		"and these are strings; begin with "+readsText)
	require.ErrorIs(t, err, problem.ErrColumnType)

	s, err = pipeline.Parse([]byte("dense: [{columns: [I1..I13]}]"))
	require.NoError(t, err)
	r, err := resolve.Pipeline(s, schema)
	require.NoError(t, err)
	_, _, err = lowering.Lower(r)
	require.EqualError(t, err, "pipeline: line 1:9: dense[0]: columns I1..I13: null can reach the output: the column "+
		"may be null and dense features "+
		"have no place for one; put fill_null first")
}
