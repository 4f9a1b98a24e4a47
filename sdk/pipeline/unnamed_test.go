package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// A column may have no name; its feature must have one.
func TestColumnWithoutAName(t *testing.T) {
	schema := []columntypes.Column{{Kind: program.Int64}, {Name: "b", Kind: program.Int64}}
	resolve := func(text string) (*resolve.Resolved, error) {
		s, err := pipeline.Parse([]byte(text))
		require.NoError(t, err)
		return resolve.Pipeline(s, schema)
	}
	r, err := resolve(`sparse: [{columns: ["", b], as: "f{i}"}]`)
	require.NoError(t, err)
	require.Len(t, r.Keys, 2)
	assert.Equal(t, []string{"f0", "", "f1", "b"}, []string{r.Keys[0].Name, r.Keys[0].Column.Name, r.Keys[1].Name,
		r.Keys[1].Column.Name})
	p, _, err := lowering.Lower(r)
	require.NoError(t, err)
	require.NoError(t, p.Validate())

	_, err = resolve(`sparse: [{columns: [""]}]`)
	require.EqualError(t, err,
		`pipeline: line 1:10: sparse[0]: wrong value: the column has no name, and a feature must have one; name it with as`)
	_, err = resolve(`sparse: [{columns: ["*"]}]`)
	require.ErrorIs(t, err, problem.ErrValue)
	_, err = pipeline.Parse([]byte(`label: {column: ""}`))
	require.ErrorIs(t, err, problem.ErrValue)
}
