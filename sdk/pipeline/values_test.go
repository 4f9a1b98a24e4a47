package pipeline_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/problem"
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
	assert.Equal(t, p2.Marshal(), p.Marshal())
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

func TestBadValues(t *testing.T) {
	for name, c := range map[string]struct {
		doc  string
		is   error
		want string
	}{
		"unused": {"values: [{as: v, from: i}]\nsparse: [{columns: [i]}]", problem.ErrUnused,
			`line 1:10: values[0]: value is not used: no group and no other value names "v"; remove it`},
		"a cycle": {"values:\n - {as: v, from: w}\n - {as: w, inputs: [c_0, v], ops: [cartesian]}\nsparse: [{columns: [v]}]",
			problem.ErrCycle, `line 3:26: values[1].inputs[1]: column "w": values form a cycle: "v" is made of itself`},
		"itself": {"values: [{as: v, from: v}]\nsparse: [{columns: [v]}]", problem.ErrCycle,
			`line 1:24: values[0].from: column "v": values form a cycle: "v" is made of itself`},
		"a column's name": {"values: [{as: i, from: c_0}]\nsparse: [{columns: [i]}]", problem.ErrDuplicate,
			`line 1:10: values[0].as: given twice: "i" is a column of the dataset; give the value another name`},
		"two of a name": {"values: [{as: v, from: i}, {as: v, from: i}]\nsparse: [{columns: [v]}]", problem.ErrDuplicate,
			`line 1:28: values[1].as: given twice: a second value named "v"`},
		"no name": {"values: [{from: i}]\nsparse: [{columns: [i]}]", problem.ErrMissing,
			`line 1:10: values[0]: missing: as: the name of the value`},
		"of nothing": {"values: [{as: v}]\nsparse: [{columns: [v]}]", problem.ErrMissing,
			`line 1:10: values[0]: missing: from: a column or value, or inputs: several of them`},
		"of both": {"values: [{as: v, from: i, inputs: [i, i], ops: [cartesian]}]\nsparse: [{columns: [v]}]",
			problem.ErrValue,
			`line 1:10: values[0]: wrong value: from and inputs, want one of them`},
		"an unknown key": {"values: [{as: v, form: i}]\nsparse: [{columns: [v]}]", problem.ErrUnknownKey,
			`line 1:18: values[0].form: unknown key: "form"; did you mean "from"?`},
		"a missing column": {"values: [{as: v, from: labl}]\nsparse: [{columns: [v]}]", problem.ErrMissingColumn,
			`line 1:24: values[0].from: column "v": missing column: "labl" is not in the dataset; did you mean "label"?`},
		"several columns": {`values: [{as: v, from: "c_*"}]` + "\nsparse: [{columns: [v]}]", problem.ErrPattern,
			`line 1:24: values[0].from: column "v": wrong column pattern: "c_*" names 4 columns, want one`},
		"columns and inputs": {"sparse: [{columns: [i], inputs: [i, i], as: x, ops: [cartesian]}]", problem.ErrValue,
			`line 1:10: sparse[0]: wrong value: columns and inputs, want one of them: columns make a feature each, inputs ` +
				`one together`},
		"no name of inputs": {"sparse: [{inputs: [i, i], ops: [cartesian]}]", problem.ErrMissing,
			`line 1:10: sparse[0]: missing: as: the name of the feature that the inputs make`},
		"a name with braces": {`sparse: [{inputs: [i, i], as: "{i}", ops: [cartesian]}]`, problem.ErrValue,
			`line 1:10: sparse[0].as: wrong value: "{i}": inputs make one feature, whose name has no braces`},
		"no operators": {"sparse: [{inputs: [i, i], as: x}]", problem.ErrMissing,
			`line 1:10: sparse[0]: missing: ops: the first operator takes the inputs together, as cartesian`},
		"a chain of inputs": {"sparse: [{inputs: [i, i], as: x, ops: [fill_null: 0]}]", problem.ErrValue,
			`line 1:40: sparse[0].ops[0]: wrong value: fill_null takes one value; the first operator of inputs takes them ` +
				`together: cartesian (2 inputs), compute_score (2 to 4 inputs), hash_cross (2 to 8 inputs), ` +
				`id_list_transform (2 inputs), wasm (1 to 8 inputs), with_scores (2 inputs)`},
		"scores of too few inputs": {"dense: [{inputs: [list, i], as: x, " +
			"ops: [compute_score: {function: get_cosine_similarity}]}]", problem.ErrValue,
			`line 1:42: dense[0].ops[0]: column "x": wrong value: get_cosine_similarity takes 4 inputs (ids, scores, ` +
				`matching ids, matching scores), and these are 2`},
		"scores of too many inputs": {"dense: [{inputs: [list, i, i], as: x, " +
			"ops: [compute_score: {function: get_max_count}]}]", problem.ErrValue,
			`line 1:45: dense[0].ops[0]: column "x": wrong value: get_max_count takes 2 inputs (ids, matching ids), ` +
				`and these are 3`},
		"an unknown score": {"dense: [{inputs: [list, i], as: x, ops: [compute_score: {function: jaccard}]}]",
			problem.ErrValue,
			`line 1:68: dense[0].ops[0].compute_score.function: wrong value: the text "jaccard", want one of ` +
				`has_id_overlap, id_overlap_count, get_max_count, get_jaccard_similarity, get_cosine_similarity, ` +
				`get_score_sum, get_score_min, get_score_max`},
		"a norm of counts": {"dense: [{inputs: [list, i], as: x, ops: [compute_score: {function: get_max_count, " +
			"zero_norm: zero}]}]", problem.ErrValue,
			`line 1:94: dense[0].ops[0].compute_score.zero_norm: wrong value: get_max_count has no norm; leave ` +
				`zero_norm out`},
		"scores of text": {"dense: [{inputs: [list, i, s], as: x, ops: [compute_score: {function: get_score_sum}]}]",
			problem.ErrColumnType,
			`line 1:28: dense[0].inputs[2]: column "x": wrong type of column: compute_score takes numbers, and these ` +
				`are strings; begin with ` + readsText},
		"scores in place of ids": {"dense: [{inputs: [list, f, i], as: x, ops: [compute_score: {function: get_score_sum}]}]",
			problem.ErrColumnType,
			`line 1:25: dense[0].inputs[1]: column "x": wrong type of column: compute_score takes ids (int64), and ` +
				`these are float32; bucketize makes ids of real numbers`},
		"scores that are keys": {"sparse: [{inputs: [list, i], as: x, ops: [compute_score: {function: get_max_count}]}]",
			problem.ErrColumnType,
			`line 1:10: sparse[0]: column "x": wrong type of column: sparse values are ids (int64), and these are ` +
				`float32; bucketize makes ids of real numbers`},
		"one of several inputs": {"sparse: [{inputs: [i], as: x, ops: [hash_cross: 5]}]", problem.ErrValue,
			`line 1:37: sparse[0].ops[0]: wrong value: hash_cross takes 2 to 8 inputs, and these are 1`},
		"classes of a list": {"dense: [{columns: [list], ops: [onehot: {classes: 3}, fixed_length: {length: 2}]}]",
			problem.ErrColumnType,
			`line 1:33: dense[0].ops[0]: column "list": wrong type of column: onehot takes one value a row, and ` +
				`this column has lists`},
		"classes of real numbers": {"dense: [{columns: [f], ops: [onehot: {classes: 3}]}]", problem.ErrColumnType,
			`line 1:30: dense[0].ops[0]: column "f": wrong type of column: onehot takes ids (int64), and these ` +
				`are float32; bucketize makes ids of real numbers`},
		"classes of text": {"dense: [{columns: [s], ops: [onehot: {classes: 3}]}]", problem.ErrColumnType,
			`line 1:30: dense[0].ops[0]: column "s": wrong type of column: onehot takes numbers, and these are ` +
				`strings; begin with ` + readsText},
		"classes that are keys": {"sparse: [{columns: [i], ops: [onehot: {classes: 3}]}]", problem.ErrColumnType,
			`line 1:10: sparse[0]: column "i": wrong type of column: onehot makes dense columns; put it to a ` +
				`group of dense`},
		"classes that are a label": {"label: {column: i, ops: [onehot: {classes: 3}]}", problem.ErrColumnType,
			`line 1:8: label: column "i": wrong type of column: onehot makes dense columns; put it to a group ` +
				`of dense`},
		"classes as a value": {"values: [{as: v, from: i, ops: [onehot: {classes: 3}]}]\ndense: [{columns: [v]}]",
			problem.ErrValue,
			`line 1:10: values[0]: column "v": wrong value: onehot makes dense columns, and no value that ` +
				`others take; put it to a group of dense`},
		"an operator behind classes": {"dense: [{columns: [i], ops: [onehot: {classes: 3}, log: {add: 1}]}]",
			problem.ErrValue,
			`line 1:52: dense[0].ops[1]: column "i": wrong value: log behind onehot, which ends the operators ` +
				`of a dense feature`},
		"no classes": {"dense: [{columns: [i], ops: [onehot: {classes: 0}]}]", problem.ErrValue,
			`line 1:48: dense[0].ops[0].onehot.classes: wrong value: 0, want at least 1`},
		"too many classes": {"dense: [{columns: [i], ops: [onehot: {classes: 4097}]}]", problem.ErrValue,
			`line 1:48: dense[0].ops[0].onehot.classes: wrong value: 4097, want at most 4096`},
		"one bound": {"dense: [{columns: [f], ops: [onehot: {classes: 3, lower: 0}]}]", problem.ErrMissing,
			`line 1:30: dense[0].ops[0].onehot: missing: upper: the end of the range that begins at lower`},
		"the other bound": {"dense: [{columns: [f], ops: [onehot: {classes: 3, upper: 0}]}]", problem.ErrMissing,
			`line 1:30: dense[0].ops[0].onehot: missing: lower: the beginning of the range that ends at upper`},
		"bounds that descend": {"dense: [{columns: [f], ops: [onehot: {classes: 3, lower: 1, upper: 0}]}]", problem.ErrValue,
			`line 1:30: dense[0].ops[0].onehot: wrong value: lower 1, upper 0: want an upper bound above the ` +
				`lower`},
		"bounds of no width": {"dense: [{columns: [f], ops: [onehot: {classes: 3, lower: 16777216, upper: 16777217}]}]",
			problem.ErrValue,
			`line 1:30: dense[0].ops[0]: column "f": wrong value: lower 16777216, upper 16777217: 3 classes ` +
				`between them have no width in float32`},
		"nine inputs": {"sparse: [{inputs: [i, i, i, i, i, i, i, i, i], as: x, ops: [hash_cross: 5]}]", problem.ErrValue,
			`line 1:61: sparse[0].ops[0]: wrong value: hash_cross takes 2 to 8 inputs, and these are 9`},
		"a list that is hashed": {"sparse: [{inputs: [i, list], as: x, ops: [hash_cross: 5]}]", problem.ErrColumnType,
			`line 1:23: sparse[0].inputs[1]: column "x": wrong type of column: hash_cross takes one value a row, and these ` +
				`are lists; cartesian takes lists`},
		"no bucket": {"sparse: [{inputs: [i, i], as: x, ops: [hash_cross: 0]}]", problem.ErrValue,
			`line 1:52: sparse[0].ops[0].hash_cross.buckets: wrong value: 0, want at least 1`},
		"no bucket of one": {"sparse: [{columns: [i], ops: [hash_bucket: 0]}]", problem.ErrValue,
			`line 1:44: sparse[0].ops[0].hash_bucket.buckets: wrong value: 0, want at least 1`},
		"an empty table of texts": {"sparse: [{columns: [s], ops: [map_text: {table: {}}]}]", problem.ErrValue,
			`line 1:49: sparse[0].ops[0].map_text.table: wrong value: 0 texts, want 1 to 65536`},
		"a text twice": {"sparse: [{columns: [s], ops: [map_text: {table: {a: 1, \"a\": 2}}]}]", problem.ErrDuplicate,
			`line 1:56: sparse[0].ops[0].map_text.table.a: given twice: key a`},
		"a number as a text": {"sparse: [{columns: [s], ops: [map_text: {table: {1: 1}}]}]", problem.ErrValue,
			`line 1:50: sparse[0].ops[0].map_text.table.1: wrong value: the number 1 as a key, want text; put it in quotes`},
		"a text as a value": {"sparse: [{columns: [s], ops: [map_text: {table: {a: b}}]}]", problem.ErrValue,
			`line 1:53: sparse[0].ops[0].map_text.table[0]: wrong value: the text "b", want a number`},
		"a list of texts": {"sparse: [{columns: [s], ops: [map_text: {table: [a]}]}]", problem.ErrValue,
			`line 1:49: sparse[0].ops[0].map_text.table: wrong value: a list, want a mapping of texts to whole numbers`},
		"a default and nulls": {"sparse: [{columns: [s], ops: [map_text: {table: {a: 1}, default: 2, unknown: as_null}]}]",
			problem.ErrValue,
			`line 1:78: sparse[0].ops[0].map_text.unknown: wrong value: as_null beside a default, want one of them`},
		"numbers by a table of texts": {"sparse: [{columns: [i], ops: [map_text: {table: {a: 1}}]}]", problem.ErrColumnType,
			`line 1:31: sparse[0].ops[0]: column "i": wrong type of column: map_text takes text, and these are int64`},
		"nulls of unknown texts in dense": {"dense: [{columns: [s], ops: [map_text: {table: {a: 1}, unknown: as_null}]}]",
			problem.ErrNull,
			`line 1:9: dense[0]: column "s": null can reach the output: the column may be null and dense features ` +
				`have no place for one; put fill_null first`},
		"another type of numbers": {"dense: [{columns: [s], ops: [unpack: float16, fixed_length: {length: 2}]}]",
			problem.ErrValue,
			`line 1:38: dense[0].ops[0].unpack.element: wrong value: the text "float16", want one of float32`},
		"arrays of numbers": {"dense: [{columns: [i], ops: [unpack: float32, fixed_length: {length: 2}]}]",
			problem.ErrColumnType,
			`line 1:30: dense[0].ops[0]: column "i": wrong type of column: unpack takes bytes, and these are int64: leave ` +
				`unpack out`},
		"lists of arrays": {"sparse: [{columns: [slist], ops: [unpack: float32, bucketize: {borders: [1]}]}]",
			problem.ErrColumnType,
			`line 1:35: sparse[0].ops[0]: column "slist": wrong type of column: unpack takes one value a row, and these ` +
				`are lists: write one array a row`},
		"arrays as a label": {"label: {column: s, ops: [unpack: float32]}", problem.ErrColumnType,
			`line 1:8: label: column "s": wrong type of column: a list cannot be label: only sparse features have several ` +
				`values a row; list_length counts their elements`},
		"arrays without a length": {"dense: [{columns: [s], ops: [unpack: float32]}]", problem.ErrColumnType,
			`line 1:9: dense[0]: column "s": wrong type of column: a list cannot be dense: only sparse features have ` +
				`several values a row; fixed_length makes dense columns of lists of one length, and list_length counts ` +
				`their elements`},
		"no unsigned remainder": {"sparse: [{columns: [i], ops: [unsigned_modulus: 0]}]", problem.ErrValue,
			`line 1:49: sparse[0].ops[0].unsigned_modulus.modulus: wrong value: 0, want at least 1`},
		"an unsigned remainder of a real number": {"sparse: [{columns: [f], ops: [unsigned_modulus: 5]}]",
			problem.ErrColumnType,
			`line 1:31: sparse[0].ops[0]: column "f": wrong type of column: unsigned_modulus takes ids (int64), and these ` +
				`are float32; bucketize makes ids of real numbers`},
		"three inputs": {"sparse: [{inputs: [i, i, i], as: x, ops: [cartesian]}]", problem.ErrValue,
			`line 1:43: sparse[0].ops[0]: wrong value: cartesian takes 2 inputs, and these are 3`},
		"in a chain": {"sparse: [{columns: [i], ops: [cartesian]}]", problem.ErrValue,
			`line 1:31: sparse[0].ops[0]: wrong value: cartesian takes several inputs: write inputs: [a, b] instead of ` +
				`columns, or name a value, and put cartesian first`},
		"behind another": {"sparse: [{inputs: [i, i], as: x, ops: [cartesian, cartesian]}]", problem.ErrValue,
			`line 1:51: sparse[0].ops[1]: wrong value: cartesian takes several inputs: write inputs: [a, b] instead of ` +
				`columns, or name a value, and put cartesian first`},
		"of real numbers": {"sparse: [{inputs: [i, f], as: x, ops: [cartesian]}]", problem.ErrColumnType,
			`line 1:23: sparse[0].inputs[1]: column "x": wrong type of column: cartesian takes ids (int64), and these are ` +
				`float32; bucketize makes ids of real numbers`},
		"of text": {"sparse: [{inputs: [s, i], as: x, ops: [cartesian]}]", problem.ErrColumnType,
			`line 1:20: sparse[0].inputs[0]: column "x": wrong type of column: cartesian takes numbers, and these are ` +
				`strings; begin with ` + readsText},
		"too long": {"sparse: [{inputs: [i, i], as: x, ops: [cartesian: {max_length: 65537}]}]", problem.ErrValue,
			`line 1:64: sparse[0].ops[0].cartesian.max_length: wrong value: 65537, want at most 65536`},
		"a list that is dense": {"dense: [{inputs: [list, i], as: x, ops: [cartesian]}]", problem.ErrColumnType,
			`line 1:9: dense[0]: column "x": wrong type of column: a list cannot be dense: only sparse features have ` +
				`several values a row; fixed_length makes dense columns of lists of one length, and list_length counts ` +
				`their elements`},
		"a null that is dense": {"dense: [{inputs: [i_null, i], as: x, ops: [cartesian]}]", problem.ErrNull,
			`line 1:9: dense[0]: column "x": null can reach the output: the column may be null and dense features have no ` +
				`place for one; put fill_null first`},
		"ids that do not fit": {"ids: int32\nsparse: [{inputs: [i, i], as: x, ops: [cartesian]}]", problem.ErrIDs,
			`line 2:10: sparse[0]: column "x": ids do not fit int32: ids of "x" may be -9223372036854775808 to ` +
				`9223372036854775807; end with sigrid_hash, positive_modulus or clamp within int32, or say ids: int64`},
		"scores dropped": {"sparse: [{inputs: [i, i], as: x, scores: drop, ops: [cartesian]}]", problem.ErrColumnType,
			`line 1:10: sparse[0]: column "x": wrong type of column: scores: drop, and it has none`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := lower(c.doc, zoo())
			require.ErrorIs(t, err, c.is)
			assert.EqualError(t, err, "pipeline: "+c.want)
		})
	}
}
