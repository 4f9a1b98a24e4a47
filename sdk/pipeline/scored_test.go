package pipeline_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// TestScoresAreWeights checks which keys have weights, and what a canonical form says of dropped scores.
func TestScoresAreWeights(t *testing.T) {
	r, p, err := lower("sparse: [{columns: [list], ops: [enumerate, positive_modulus: 7]}, {columns: [i]}]", zoo())
	require.NoError(t, err)
	assert.True(t, r.Weights())
	assert.True(t, p.Output.Weights)
	assert.EqualValues(t, 7, r.Keys[0].NumEmbeddings)
	assert.Contains(t, r.Notes(), "1 of 2 keys have no scores: each of their ids weighs 1")

	dropped, p, err := lower(
		"sparse: [{columns: [list], scores: drop, ops: [enumerate, positive_modulus: 7]}, {columns: [i]}]", zoo())
	require.NoError(t, err)
	assert.False(t, dropped.Weights())
	assert.False(t, p.Output.Weights)
	assert.NotEqual(t, string(r.Canonical()), string(dropped.Canonical()))
}

// TestEnumerateKeepsBounds checks that ids are bounded behind enumerate if they are before it.
func TestEnumerateKeepsBounds(t *testing.T) {
	r, _, err := lower("ids: int32\nsparse: [{columns: [list], ops: [positive_modulus: 7, enumerate]}]", zoo())
	require.NoError(t, err)
	assert.EqualValues(t, 7, r.Keys[0].NumEmbeddings)
}

// TestAnyNamesWriteOneStep checks that a value written twice is one step, and that a scalar without nulls has lengths.
func TestAnyNamesWriteOneStep(t *testing.T) {
	named, p, err := lower(`values: [{as: v, from: i, ops: [enumerate]}]
sparse: [{columns: [v], as: a, ops: [positive_modulus: 3]}, {columns: [v], as: b, ops: [positive_modulus: 5]}]`, zoo())
	require.NoError(t, err)
	assert.Len(t, p.Graphs[0].Steps, 1)
	assert.False(t, p.Output.Fixed)
	inline, q, err := lower(`sparse:
  - {columns: [i], as: a, ops: [enumerate, positive_modulus: 3]}
  - {columns: [i], as: b, ops: [enumerate, positive_modulus: 5]}`, zoo())
	require.NoError(t, err)
	assert.Equal(t, string(named.Canonical()), string(inline.Canonical()))
	assert.Equal(t, p, q)
}

// TestFeaturesOfMapsInSteps checks that features of maps meet in steps, and what is read of the maps.
func TestFeaturesOfMapsInSteps(t *testing.T) {
	r, p, err := lower(`
values:
  - {as: clicked, from: "id_score_list_features[8]", ops: [firstx: 20]}
  - {as: clicked_scores, from: clicked, ops: [scores]}
sparse:
  - {inputs: ["id_list_features[101]", clicked], as: both, ops: [id_list_transform, sigrid_hash: {max: 1000}]}
  - {columns: ["id_list_features[7]"], ops: [enumerate]}
  - {columns: [clicked], as: alone, ops: [sigrid_hash: {max: 1000}]}
dense:
  - inputs: ["id_list_features[101]", clicked, clicked_scores]
    as: sum
    ops: [compute_score: {function: get_score_sum}]
  - {columns: ["float_features[3]"], ops: [fill_null: 0]}
`, mapSchema())
	require.NoError(t, err)
	assert.Equal(t, []string{"both", "id_list_features[7]", "alone"},
		[]string{r.Keys[0].Name, r.Keys[1].Name, r.Keys[2].Name})
	q, err := operator.Unmarshal(wire.Marshal(p))
	require.NoError(t, err)
	assert.Equal(t, p, q)
	goldenfile.Text(t, "testdata/lower/maps_in_steps.txt", p.String()+string(r.Canonical())+"\n")

	// A map that partitions may lack is absent as a whole.
	schema := mapSchema()
	schema[2].Absent = columntypes.Absence{Partitions: 1, Names: "b.parquet"}
	doc := `sparse: [{inputs: ["id_list_features[1]", "id_list_features[2]"], as: x, %sops: [cartesian]}]`
	_, _, err = lower(fmt.Sprintf(doc, ""), schema)
	require.ErrorIs(t, err, problem.ErrMissingColumn)
	_, p, err = lower(fmt.Sprintf(doc, "absent: allow, "), schema)
	require.NoError(t, err)
	assert.True(t, p.Columns[0].Absent && p.Columns[1].Absent)
	assert.Len(t, p.Columns[1].Picks, 2)
}
