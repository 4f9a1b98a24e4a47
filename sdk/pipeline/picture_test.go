package pipeline

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	s, err := Parse([]byte(drawnDocument))
	require.NoError(t, err)
	p := s.Draw()
	golden(t, "testdata/picture.txt", p.Text())
	golden(t, "testdata/picture.dot", p.DOT())
	var read Picture
	b, err := json.Marshal(p)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &read))
	assert.Equal(t, p, &read)
	assert.InDelta(t, p.EstimatedNanoseconds, 0.11+1.01+23+0.46+1.6+0.3+0.46, 1e-9)
}

// Estimates are of operators. An operator that was not measured has none.
func TestEstimates(t *testing.T) {
	for name, entry := range operators {
		if entry.Cost != nil {
			assert.GreaterOrEqual(t, entry.Cost(&Op{Name: name}), 0.0, name)
		}
	}
	list := MapID(IDTable{Values: []int64{1}}, With("default", Int(0)))
	few, _ := list.estimateCost()
	pairs := MapID(IDTable{Keys: []int64{1}, Values: []int64{1}}, With("default", Int(0)))
	many, _ := pairs.estimateCost()
	assert.Less(t, few, many)
	unknown := &Spec{Sparse: []Group{{Columns: Columns("a\tb\nc"), Ops: []Op{{Name: "no\noperator"}}}}}
	assert.Contains(t, string(unknown.Draw().Text()), "(no estimate)")
	assert.Equal(t, strings.Count(string(unknown.Draw().Text()), "\n"), 6, "foreign text breaks no line")
	assert.Equal(t, DefaultBatch, unknown.Draw().Batch)
}
