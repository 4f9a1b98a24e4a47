package pipeline_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

// TestSameCrosses checks that pipelines that make the same mini-batches have one canonical form, and so one digest,
// whether values are named or written where they are used, and in any order.
func TestSameCrosses(t *testing.T) {
	var forms []string
	for _, doc := range []string{
		`sparse:
  - {inputs: [list, c_0], as: a, ops: [cartesian: {max_length: 1024}, positive_modulus: 5]}
  - {inputs: [list, c_0], as: b, ops: [cartesian, sigrid_hash: {max: 7}]}`,
		`values: [{as: v, inputs: [list, c_0], ops: [cartesian: {overflow: cut}]}]
sparse: [{columns: [v], as: a, ops: [positive_modulus: 5]}, {columns: [v], as: b, ops: [sigrid_hash: {max: 7}]}]`,
		`values:
  - {as: b, from: v, ops: [sigrid_hash: {max: 7}]}
  - {as: v, inputs: [l, c], ops: [cartesian]}
  - {as: l, from: list}
  - {as: c, from: c_0}
sparse: [{columns: [v], as: a, ops: [positive_modulus: 5]}, {columns: [b]}]`,
	} {
		r, p, err := lower(doc, zoo())
		require.NoError(t, err)
		forms = append(forms, string(r.Canonical()))
		require.Len(t, p.Graphs, 1, p)
		combined := 0
		for _, s := range p.Graphs[0].Steps {
			if s.Combine != nil {
				combined++
			}
		}
		assert.Equal(t, 1, combined, "the pairs are made once: %v", p)
	}
	assert.Equal(t, forms[0], forms[1])
	assert.Equal(t, forms[0], forms[2])
	other, _, err := lower(`sparse:
  - {inputs: [c_0, list], as: a, ops: [cartesian, positive_modulus: 5]}
  - {inputs: [c_0, list], as: b, ops: [cartesian, sigrid_hash: {max: 7}]}`, zoo())
	require.NoError(t, err)
	assert.NotEqual(t, forms[0], string(other.Canonical()), "the order of inputs counts")
}

// TestValuesOfOneColumnAreChains checks that a value that one column makes leaves no trace: neither in the program nor
// in the digest.
func TestValuesOfOneColumnAreChains(t *testing.T) {
	r, p, err := lower(`values: [{as: v, from: w, ops: [clamp: {min: 0}]}, {as: w, from: i_null, ops: [fill_null: 3]}]
dense: [{columns: [v], as: d, ops: [log: {add: 1}]}]
sparse: [{columns: [v], as: s, ops: [positive_modulus: 9]}]`, zoo())
	require.NoError(t, err)
	r2, p2, err := lower(`dense: [{columns: [i_null], as: d, ops: [fill_null: 3, clamp: {min: 0}, log: {add: 1}]}]
sparse: [{columns: [i_null], as: s, ops: [fill_null: 3, clamp: {min: 0}, positive_modulus: 9]}]`, zoo())
	require.NoError(t, err)
	assert.Empty(t, p.Graphs)
	assert.Equal(t, string(r2.Canonical()), string(r.Canonical()))
	assert.Equal(t, wire.Marshal(p2), wire.Marshal(p))
}

// TestManyStepsOfSteps checks that a value that takes each value before it twice stays small: its tree has 2^60 leaves.
func TestManyStepsOfSteps(t *testing.T) {
	var doc strings.Builder
	doc.WriteString("values:\n  - {as: v0, from: c_0}\n")
	names := []string{"v0"}
	for i := range 60 {
		name := "w" + strings.Repeat("x", i)
		last := names[len(names)-1]
		doc.WriteString("  - {as: " + name + ", inputs: [" + last + ", " + last + "], ops: [cartesian]}\n")
		names = append(names, name)
	}
	doc.WriteString("sparse: [{columns: [" + names[len(names)-1] + "], as: f, ops: [positive_modulus: 5]}]\n")
	r, p, err := lower(doc.String(), zoo())
	require.NoError(t, err)
	require.Len(t, p.Graphs[0].Steps, 60)
	assert.Less(t, len(r.Canonical()), 20_000)
}

// TestGraphsHaveRoom checks that a feature that shares a step goes to a new graph if the columns of both are too many.
func TestGraphsHaveRoom(t *testing.T) {
	schema := make([]columntypes.Column, 2*program.MaxGraphColumns)
	var doc strings.Builder
	doc.WriteString("values:\n  - {as: v, inputs: [c0, c1], ops: [cartesian]}\n")
	name := func(i int) string {
		return "c" + strings.Repeat("0", 0) + string(rune('a'+i/26%26)) + string(rune('a'+i%26))
	}
	for i := range schema {
		schema[i] = columntypes.Column{Name: name(i), Kind: program.Int64}
	}
	schema[0].Name, schema[1].Name = "c0", "c1"
	doc.WriteString("sparse:\n")
	for i := 2; i < len(schema); i++ {
		doc.WriteString("  - {inputs: [v, " + name(i) + "], as: f" + name(i) + ", ops: [cartesian, positive_modulus: 5]}\n")
	}
	_, p, err := lower(doc.String(), schema)
	require.NoError(t, err)
	require.Len(t, p.Graphs, 3)
	assert.Equal(t, program.MaxGraphColumns, p.Parts(0))
}
