package picture

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/sdk/pipeline"
)

const drawnDocument = `
name: "a \"quoted\" name"
batch: 100
label: {column: label}
dense: [{columns: [i, f], as: "{column}_log", ops: [clamp: {min: 0}, log: {add: 1}]}]
values: [{as: few, from: list, ops: [firstx: 3]}]
sparse:
  - {inputs: [few, i], as: cross, ops: [cartesian, positive_modulus: 9]}
  - {columns: [list], ops: [map_id: {table: {5: 1}}, positive_modulus: 50]}
generated: [{columns: [f], ops: [bucketize: {borders: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]}]}]
`

func TestPictures(t *testing.T) {
	s, err := pipeline.Parse([]byte(drawnDocument))
	require.NoError(t, err)
	p := Draw(s)
	goldenfile.Text(t, "testdata/picture.txt", string(p.Text()))
	goldenfile.Text(t, "testdata/picture.dot", string(p.DOT()))
	var read Picture
	b, err := json.Marshal(p)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &read))
	assert.Equal(t, p, &read)
	assert.InDelta(t, p.EstimatedNanoseconds, 0.11+1.01+23+0.46+1.6+0.3+0.46, 1e-9)
}

// Estimates are of operators. An operator that was not measured has none.
func TestEstimates(t *testing.T) {
	for _, entry := range pipeline.Catalogue() {
		if entry.Cost != nil {
			assert.GreaterOrEqual(t, entry.Cost(&pipeline.Op{Name: entry.Name}), 0.0, entry.Name)
		}
	}
	unknown := Draw(&pipeline.Spec{Sparse: []pipeline.Group{{
		Columns: pipeline.Columns("a\tb\nc"), Ops: []pipeline.Op{
			{Name: "no\noperator"},
			pipeline.MapID(pipeline.IDTable{Values: []int64{1}}),
			pipeline.MapID(pipeline.IDTable{Keys: []int64{1}, Values: []int64{1}}),
		}}}})
	steps := unknown.Groups[0].Steps
	assert.Less(t, *steps[1].EstimatedNanoseconds, *steps[2].EstimatedNanoseconds)
	assert.Contains(t, string(unknown.Text()), "(no estimate)")
	assert.Equal(t, strings.Count(string(unknown.Text()), "\n"), 8, "foreign text breaks no line")
	assert.Equal(t, pipeline.DefaultBatch, unknown.Batch)
}
