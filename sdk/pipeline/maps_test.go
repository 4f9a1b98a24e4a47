package pipeline_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/ngram"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// mapSchema is the schema of DPP's rows: a label and the three maps.
func mapSchema() []columntypes.Column {
	return []columntypes.Column{
		{Name: "label", Kind: program.Float32},
		{Name: "float_features", Kind: program.Float32, Nullable: true,
			Map: columntypes.Map{Keys: "float_features.key_value.key", Values: "float_features.key_value.value"}},
		{Name: "id_list_features", Kind: program.Int64, List: true, Nullable: true,
			Map: columntypes.Map{Keys: "id_list_features.key_value.key",
				Values: "id_list_features.key_value.value.list.element"}},
		{Name: "id_score_list_features", Kind: program.Int64, List: true, Nullable: true,
			Map: columntypes.Map{Keys: "s.key", Values: "s.id", Scores: "s.score", ScoreKind: program.Float64}},
		{Name: "names", Unsupported: errors.New("map whose keys are BYTE_ARRAY")},
		{Name: "odd[1]", Kind: program.Int64},
		{Name: "tags", Kind: program.Int64, Nullable: true,
			Map: columntypes.Map{Keys: "tags.key_value.key", Values: "tags.key_value.value", TextKeys: true}},
		{Name: "words", Kind: program.Bytes, Nullable: true,
			Map: columntypes.Map{Keys: "words.key_value.key", Values: "words.key_value.value", TextKeys: true}},
		{Name: "queries", Kind: program.Bytes, List: true, Nullable: true, ElementNullable: true,
			Map: columntypes.Map{Keys: "queries.key", Values: "queries.id", Scores: "queries.score",
				ScoreKind: program.Float32}},
		{Name: "prices", Kind: program.Bytes, Nullable: true, Logical: "DECIMAL(9, 2)",
			Map: columntypes.Map{Keys: "prices.key", Values: "prices.value"}},
		{Name: "seen", Kind: program.Bytes, Nullable: true, Logical: "INT96",
			Map: columntypes.Map{Keys: "seen.key", Values: "seen.value"}},
		{Name: "halves", Kind: program.Bytes, Nullable: true, Logical: "FLOAT16",
			Map: columntypes.Map{Keys: "halves.key", Values: "halves.value"}},
	}
}

const mapDocument = `
label: {column: label}
dense:
  - columns: ["float_features[1..3, 9]"]
    ops: [fill_null: 0, log: {add: 1}]
sparse:
  - columns: ["id_list_features[101]", "id_list_features[7]"]
    as: "ids_{n}"
    ops: [firstx: 20, sigrid_hash: {max: 1000}]
  - columns: ["id_score_list_features[-5..-4]"]
    ops: [sigrid_hash: {max: 1000}]
  - columns: ["id_score_list_features[8]"]
    scores: drop
    ops: [sigrid_hash: {max: 1000}]
generated:
  - columns: ["float_features[2]"]
    as: bucket
    ops: [fill_null: 0, bucketize: {borders: [0.5, 1.0]}]
`

func lowerMaps(t *testing.T, document string) (*resolve.Resolved, *program.Program) {
	s, err := pipeline.Parse([]byte(document))
	require.NoError(t, err)
	again, err := pipeline.Parse(s.YAML())
	require.NoError(t, err)
	assert.Equal(t, string(s.YAML()), string(again.YAML()))
	r, err := resolve.Pipeline(s, mapSchema())
	require.NoError(t, err)
	p, schema, err := lowering.Lower(r)
	require.NoError(t, err)
	require.NoError(t, schema.Validate())
	assert.Equal(t, p.Output.Weights, schema.Weights)
	return r, p
}

// Features of one map are made in one walk over it, where they may.
func TestMapsLower(t *testing.T) {
	r, p := lowerMaps(t, mapDocument)
	assert.Equal(t, `source parquet
column 0 "id_list_features.key_value.key" int64 map keys
column 1 "id_list_features.key_value.value.list.element" list<int64> map values
  [101] sparse 0: firstx 20 | sigrid_hash salt 0 max 1000
  [7] sparse 1: firstx 20 | sigrid_hash salt 0 max 1000
column 2 "s.key" int64 map keys
column 3 "s.id" list<int64> map values
  [-5] scored sparse 2: sigrid_hash salt 0 max 1000
  [-4] scored sparse 3: sigrid_hash salt 0 max 1000
  [8] sparse 4: sigrid_hash salt 0 max 1000
column 4 "s.score" list<float64> map scores
column 5 "float_features.key_value.key" int64 map keys
column 6 "float_features.key_value.value" float32 map values
  [2] sparse 5: fill_null 0 | bucketize borders float32 [0.5 1] side left nan torcharrow
  [1] dense 0: fill_null 0 | log 1 refuses nan
  [2] dense 1: fill_null 0 | log 1 refuses nan
  [3] dense 2: fill_null 0 | log 1 refuses nan
  [9] dense 3: fill_null 0 | log 1 refuses nan
column 7 "label" float32
  label: refuses nan and infinities
output label true, dense 4, keys 6, ids int64, fixed false, weights
`, p.String())
	var keys []string
	for _, f := range r.Keys {
		keys = append(keys, f.Name)
	}
	assert.Equal(t, []string{"ids_101", "ids_7", "id_score_list_features[-5]", "id_score_list_features[-4]",
		"id_score_list_features[8]", "bucket"}, keys)
	assert.Equal(t, []string{"float_features[1]", "float_features[2]", "float_features[3]", "float_features[9]"},
		[]string{r.Dense[0].Name, r.Dense[1].Name, r.Dense[2].Name, r.Dense[3].Name})
	assert.Contains(t, strings.Join(r.Notes(), "\n"), "4 of 6 keys have no scores: each of their ids weighs 1")
}

// Keys of a map that stand apart are made in two walks; a scalar whose nulls are filled has one id a row.
func TestMapsLowerApart(t *testing.T) {
	_, p := lowerMaps(t, `
generated:
  - columns: ["float_features[1]"]
    ops: [fill_null: 0, bucketize: {borders: [1]}]
sparse:
  - columns: ["odd[1]"]
`)
	assert.True(t, p.Output.Fixed)
	assert.False(t, p.Output.Weights)
	_, p = lowerMaps(t, `
sparse:
  - columns: ["id_list_features[1]", "odd[1]", "id_list_features[2..3]"]
`)
	assert.Len(t, p.Columns, 5)
	assert.False(t, p.Output.Fixed)
	_, p = lowerMaps(t, `
sparse:
  - columns: ["id_score_list_features[1]"]
    scores: drop
  - columns: ["id_score_list_features[2]"]
    scores: keep
`)
	_, w := lowerMaps(t, `{sparse: [{columns: ["id_score_list_features[1]"], scores: drop, ops: [ngram: 2]}]}`)
	assert.Equal(t, []program.Op{ngram.Op{N: 2}}, w.Columns[1].Sinks[0].Ops)
	assert.Len(t, p.Columns, 3)
	assert.Equal(t, []program.Pick{{Key: 1}, {Key: 2, Scored: true}}, p.Columns[1].Picks)
	_, p = lowerMaps(t, "label: {column: \"float_features[7]\", ops: [fill_null: 0]}")
	assert.Equal(t, program.ToLabel, p.Columns[1].Sinks[0].To)
}

func TestMapsCanonical(t *testing.T) {
	r, _ := lowerMaps(t, `{sparse: [{columns: ["id_score_list_features[1]"]}]}`)
	assert.Equal(t, `{"pipeline":2,"ids":"int64","fixed":false,"dense":[],"keys":[`+
		`{"name":"id_score_list_features[1]","column":"id_score_list_features",`+
		`"key":1,"scores":true,"kind":"int64","list":true,"ops":[]}],"borders":[]}`, string(r.Canonical()))
	digest := func(document string) [32]byte {
		r, _ := lowerMaps(t, document)
		return r.Digest()
	}
	one := digest(`{sparse: [{columns: ["id_list_features[1..2]"]}]}`)
	assert.Equal(t, one, digest(`{sparse: [{columns: ["id_list_features[1, 2]"]}]}`))
	assert.Equal(t, one, digest(`{sparse: [{columns: ["id_list_features[1]"]}, {columns: ["id_list_features[ 2 ]"]}]}`))
	assert.NotEqual(t, one, digest(`{sparse: [{columns: ["id_list_features[2, 1]"]}]}`))
	assert.NotEqual(t, digest(`{sparse: [{columns: ["id_list_features[1]"], as: x}]}`),
		digest(`{sparse: [{columns: ["id_list_features[2]"], as: x}]}`))
	assert.NotEqual(t, digest(`{sparse: [{columns: ["id_score_list_features[1]"]}]}`),
		digest(`{sparse: [{columns: ["id_score_list_features[1]"], scores: drop}]}`))
}

// TestTextValues checks the program of features of maps to text and to other bytes, by themselves and in a step.
func TestTextValues(t *testing.T) {
	r, p := lowerMaps(t, `
sparse:
  - {columns: ["words[color, size]"], ops: [hash_bytes: xxh3, positive_modulus: 100]}
  - {columns: ["queries[7]"], ops: [hash_bytes: murmur3_32]}
  - {inputs: [shop, size], as: both, ops: [cartesian]}
  - {columns: [hashed], ops: [sigrid_hash: {max: 50}]}
values:
  - {as: shop, from: "queries[8]", ops: [hash_bytes: xxh3]}
  - {as: size, from: "words[size]", ops: [hash_bytes: xxh3]}
  - {as: hashed, from: "queries[9]", ops: [hash_bytes: xxh3]}
dense:
  - {columns: ["prices[1]"], ops: [decimal: float32, fill_null: 0]}
  - {columns: ["seen[1]"], ops: [to_days, fill_null: 0]}
  - {columns: ["halves[1]"], ops: [fill_null: 0]}
`)
	assert.Equal(t, `source parquet
column 0 "words.key_value.key" bytes map keys
column 1 "words.key_value.value" bytes map values
  ["color"] sparse 0: hash_bytes xxh3 | positive_modulus 100
  ["size"] sparse 1: hash_bytes xxh3 | positive_modulus 100
column 2 "queries.key" int64 map keys
column 3 "queries.id" list<bytes> map values
  [7] scored sparse 2: hash_bytes murmur3_32
column 4 "queries.score" list<float32> map scores
column 5 "queries.key" int64 map keys
column 6 "queries.id" list<bytes> map values
  [8] scored false
column 7 "words.key_value.key" bytes map keys
column 8 "words.key_value.value" bytes map values
  ["size"] scored false
  value 2 = [0]: hash_bytes xxh3 -> list<int64>
  value 3 = [1]: hash_bytes xxh3 -> int64
  value 4 = [2 3]: cartesian max_length 1024 overflow cut -> list<int64>
  value 4 to sparse 3:
column 9 "queries.key" int64 map keys
column 10 "queries.id" list<bytes> map values
  [9] scored sparse 4: hash_bytes xxh3 | sigrid_hash salt 0 max 50
column 11 "queries.score" list<float32> map scores
column 12 "prices.key" int64 map keys
column 13 "prices.value" bytes map values
  [1] dense 0: decimal scale 2 to float32 | fill_null 0
column 14 "seen.key" int64 map keys
column 15 "seen.value" bytes map values
  [1] dense 1: int96_time days | fill_null 0 | convert float32
column 16 "halves.key" int64 map keys
column 17 "halves.value" bytes map values
  [1] dense 2: float16 | fill_null 0 refuses nan
output label false, dense 3, keys 5, ids int64, fixed false, weights
`, p.String())
	assert.Contains(t, string(r.Canonical()), `"column":"words","key":"color","scores":false,"kind":"bytes","list":false`)
}

// A column whose name is the whole text comes first.
func TestMapsNameComesFirst(t *testing.T) {
	r, _ := lowerMaps(t, `{sparse: [{columns: ["odd[1]"]}]}`)
	assert.False(t, r.Keys[0].Column.Map.IsMap())
}

// TestTextKeys checks the names and the program of features of a map whose keys are text, by themselves and in a step.
func TestTextKeys(t *testing.T) {
	r, p := lowerMaps(t, `
sparse:
  - columns: ['tags[color, "a, b", " x", "", 7, größe_12]']
    ops: [fill_null: 0, positive_modulus: 10]
  - {inputs: ["tags[color]", "tags[size]"], as: both, ops: [cartesian]}
  - {columns: ["tags[color_1, color_2]"], as: "c{n}", ops: [fill_null: 0]}
`)
	var names []string
	for _, f := range r.Keys {
		names = append(names, f.Name)
	}
	assert.Equal(t, []string{"tags[color]", `tags["a, b"]`, `tags[" x"]`, `tags[""]`, "tags[7]", "tags[größe_12]",
		"both", "c1", "c2"}, names)
	assert.Equal(t, program.Bytes, p.Columns[0].Kind)
	assert.Equal(t, []program.Pick{{Text: "color"}, {Text: "a, b"}, {Text: " x"}, {Text: ""}, {Text: "7"},
		{Text: "größe_12"}}, p.Columns[1].Picks)
	assert.Equal(t, program.Bytes, p.Columns[2].Kind)
	assert.Equal(t, program.MapKeys, p.Columns[2].MapLeaf)
	assert.Equal(t, []program.Pick{{Text: "color"}, {Text: "size"}}, p.Columns[3].Picks)
	require.NoError(t, p.Validate())
	for _, name := range names[:6] { // the name of a feature is a pattern of it
		again, _ := lowerMaps(t, "sparse: [{columns: ['"+name+"'], ops: [fill_null: 0]}]")
		assert.Equal(t, name, again.Keys[0].Name)
	}
	one, _ := lowerMaps(t, `{sparse: [{columns: ["tags[color]"], as: x, ops: [fill_null: 0]}]}`)
	other, _ := lowerMaps(t, `{sparse: [{columns: ["tags[size]"], as: x, ops: [fill_null: 0]}]}`)
	assert.NotEqual(t, one.Digest(), other.Digest())
	assert.Contains(t, string(one.Canonical()), `"column":"tags","key":"color","scores":false`)
}
