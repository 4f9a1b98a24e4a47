package pipeline_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// TestPartsOfTexts checks what a pipeline knows of the parts of a text, and of their number.
func TestPartsOfTexts(t *testing.T) {
	r, p, err := lower(`
sparse: [{columns: [s], ops: [split, hash_bytes: xxh3, sigrid_hash: {max: 1000}]}]
dense: [{columns: [s_null], ops: [split: ",", list_length]}]`, zoo())
	require.NoError(t, err)
	assert.EqualValues(t, 1000, r.Keys[0].NumEmbeddings)
	assert.False(t, r.Fixed(), "a row has any number of parts")
	assert.False(t, p.Output.Fixed)
	assert.Contains(t, string(r.Canonical()), `{"split":{"separator":"|","empty":"drop"},"inputs"`)
	assert.Contains(t, string(r.Canonical()), `{"split":{"separator":",","empty":"drop"},"inputs"`)
	same, _, err := lower(`
sparse: [{columns: [s], ops: [split: {separator: "|", empty: drop}, hash_bytes: xxh3, sigrid_hash: {max: 1000}]}]
dense: [{columns: [s_null], ops: [split: {separator: ","}, list_length]}]`, zoo())
	require.NoError(t, err)
	assert.Equal(t, r.Digest(), same.Digest(), "defaults are filled in")
	other, _, err := lower(`
sparse: [{columns: [s], ops: [split: {empty: keep}, hash_bytes: xxh3, sigrid_hash: {max: 1000}]}]
dense: [{columns: [s_null], ops: [split: ",", list_length]}]`, zoo())
	require.NoError(t, err)
	assert.NotEqual(t, r.Digest(), other.Digest())
}

// TestLengthsOfLists checks that lengths are never null, and that they fit int32 and are not bounded.
func TestLengthsOfLists(t *testing.T) {
	r, p, err := lower("ids: int32\nsparse: [{columns: [list], ops: [list_length]}]\n"+
		"dense: [{columns: [slist], ops: [list_length]}]", zoo())
	require.NoError(t, err)
	assert.True(t, p.Output.Fixed, "every row has one length")
	assert.Zero(t, r.Keys[0].NumEmbeddings)
	assert.Equal(t, catalogue.Range{Low: 0, High: math.MaxInt32}, r.Keys[0].IDs)
	assert.NotEmpty(t, r.Notes())
	for _, column := range []string{"list", "flist", "slist"} {
		_, p, err := lower("dense: [{columns: ["+column+"], ops: [list_length]}]", zoo())
		require.NoError(t, err, column)
		assert.EqualValues(t, 1, p.Output.Dense)
	}

	// Partitions that lack a list lack its elements.
	schema := zoo()
	for i := range schema {
		if schema[i].Name == "list" {
			schema[i].Absent = columntypes.Absence{Partitions: 1, Names: "b.parquet"}
		}
	}
	_, p, err = lower("dense: [{columns: [list], absent: allow, ops: [list_length]}]", schema)
	require.NoError(t, err)
	assert.True(t, p.Columns[0].Absent)
}

// TestTextsOfMaps checks that a feature of a map to text is split, and that one of a map to lists is counted.
func TestTextsOfMaps(t *testing.T) {
	texts := []columntypes.Column{{Name: "tags", Kind: program.Bytes, Nullable: true,
		Map: columntypes.Map{Keys: "tags.key",
			Values: "tags.value"}}}
	_, p, err := lower(`sparse: [{columns: ["tags[1]"], ops: [split, hash_bytes: xxh3, sigrid_hash: {max: 10}]}]`, texts)
	require.NoError(t, err)
	assert.Contains(t, p.String(), `split separator "|" empty drop`)
	_, p, err = lower(`dense: [{columns: ["id_list_features[101]", "id_score_list_features[8]"], ops: [list_length]}]`,
		mapSchema())
	require.NoError(t, err)
	assert.EqualValues(t, 2, p.Output.Dense)
	for i := range p.Columns {
		assert.NotEqual(t, program.MapScores, p.Columns[i].MapLeaf, "scores are not read to count ids")
	}
}

// TestAnnotatedBytesAreNotSplit checks that bytes which the file calls something else than text are not split.
func TestAnnotatedBytesAreNotSplit(t *testing.T) {
	schema := zoo()
	for i := range schema {
		if schema[i].Name == "s" {
			schema[i].Logical = "UUID"
		}
	}
	_, _, err := lower("sparse: [{columns: [s], ops: [split, hash_bytes: xxh3]}]", schema)
	require.ErrorIs(t, err, problem.ErrColumnType)
	require.ErrorContains(t, err, "split takes text, and these are UUID")
}
