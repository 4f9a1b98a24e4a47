package pipeline_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/tensor"
)

// schemaOf is the schema that a named pipeline is meant for.
func schemaOf(name string) []columntypes.Column {
	switch {
	case strings.HasPrefix(name, "criteo") || strings.HasPrefix(name, "piper") || name == "rm1":
		return columntypes.TextSchema(false)
	case strings.HasPrefix(name, "minipipe"):
		schema := columntypes.TextSchema(false)
		for i := range schema {
			schema[i].Source, schema[i].Field, schema[i].Unsigned = program.Parquet, 0, false
			switch {
			case i > 13:
				schema[i].Kind, schema[i].Bits = program.Bytes, 0
			case i > 0:
				schema[i].Kind, schema[i].Bits = program.Float32, 0
			}
		}
		return schema
	}
	return tableI()
}

func TestNamed(t *testing.T) {
	assert.Equal(t, []string{"criteo", "criteo-512k", "criteo-5k", "criteo-8k", "dpp", "minipipe-1", "minipipe-2",
		"minipipe-3", "piper-1m", "piper-512k", "piper-5k", "rm1", "rm2", "rm3", "rm4", "rm5"}, pipeline.Names())
	var digests strings.Builder
	for _, name := range pipeline.Names() {
		s, err := pipeline.Named(name)
		require.NoError(t, err)
		assert.Equal(t, name, s.Name)
		for _, v := range s.Vocabularies {
			s, err = s.Bind(v.Name, vocabularyOf(t, s, v.Name, schemaOf(name)))
			require.NoError(t, err)
		}
		r, err := resolve.Pipeline(s, schemaOf(name))
		require.NoError(t, err)
		l, err := lowering.LowerWithLookups(r)
		require.NoError(t, err)
		require.NoError(t, l.Schema.Validate())
		assert.Empty(t, r.Notes())
		digest := r.Digest()
		fmt.Fprintf(&digests, "%s %s\n", name, hex.EncodeToString(digest[:]))
		goldenfile.Text(t, "testdata/lower/"+name+".txt", l.Program.String())
	}
	// These digests are part of the identity of jobs: a change makes running jobs' checkpoints worthless.
	goldenfile.Text(t, "resolve/testdata/digests.txt", digests.String())
	_, err := pipeline.Named("rm6")
	assert.EqualError(t, err, `pipeline "rm6": no such name; did you mean "rm1"?`)
	_, err = pipeline.Named("../named/rm1")
	assert.Error(t, err)
}

// PreSto, Table I.
func TestTableI(t *testing.T) {
	for _, c := range []struct {
		name                                     string
		dense, sparse, generated, borders, batch int
		fixed                                    bool
	}{
		{"rm1", 13, 26, 13, 1024, 8192, true},
		{"rm2", 504, 42, 21, 1024, 8192, false},
		{"rm3", 504, 42, 42, 1024, 8192, false},
		{"rm4", 504, 42, 42, 2048, 8192, false},
		{"rm5", 504, 42, 42, 4096, 8192, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := pipeline.Named(c.name)
			require.NoError(t, err)
			r, err := resolve.Pipeline(s, schemaOf(c.name))
			require.NoError(t, err)
			p, schema, err := lowering.Lower(r)
			require.NoError(t, err)
			assert.Equal(t, c.batch, r.Batch)
			assert.Len(t, schema.Dense, c.dense)
			assert.Len(t, schema.Keys, c.sparse+c.generated)
			assert.Equal(t, c.fixed, schema.Fixed())
			assert.Equal(t, c.fixed, p.Output.Fixed)
			assert.Equal(t, tensor.Int32, schema.IDs)
			for _, k := range schema.Keys {
				assert.Equal(t, int64(500000), k.NumEmbeddings)
			}
			assert.Len(t, p.Columns, c.sparse+c.dense+1, "every leaf is read once")
			for i, column := range p.Columns[c.sparse : c.sparse+c.generated] {
				require.Len(t, column.Sinks, 2, "a generated feature and the dense one share their column")
				b := column.Sinks[0].Ops[len(column.Sinks[0].Ops)-2].(*bucketize.Op)
				assert.Len(t, b.Borders32, c.borders)
				first := p.Columns[c.sparse].Sinks[0].Ops
				assert.Same(t, first[len(first)-2], b, "column %d has its own table", i)
			}
		})
	}
}

// goodDocuments are the documents testdata/lower/NAME.yaml, by their names.
func goodDocuments(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/lower/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	documents := map[string]string{}
	for _, file := range files {
		document, err := os.ReadFile(file)
		require.NoError(t, err)
		documents[strings.TrimSuffix(filepath.Base(file), ".yaml")] = string(document)
	}
	return documents
}

// TestGoodDocuments lowers each document against the zoo, and compares the whole program with testdata/lower.
func TestGoodDocuments(t *testing.T) {
	for name, document := range goodDocuments(t) {
		t.Run(name, func(t *testing.T) {
			r, p, err := lower(document, zoo())
			require.NoError(t, err)
			q, err := operator.Unmarshal(wire.Marshal(p))
			require.NoError(t, err)
			assert.Equal(t, p, q)
			goldenfile.Text(t, "testdata/lower/"+name+".txt", p.String()+string(r.Canonical())+"\n")
		})
	}
}

func TestEmbeddings(t *testing.T) {
	for doc, want := range map[string]int64{
		"[sigrid_hash: {max: 100}]":                       100,
		"[positive_modulus: 5000]":                        5000,
		"[bucketize: {borders: [1, 2, 3]}]":               4,
		"[clamp: {min: 0, max: 9}]":                       10,
		"[clamp: {min: 3, max: 9}]":                       10,
		"[clamp: {min: -1, max: 9}]":                      0, // a negative id has no row
		"[clamp: {min: 0}]":                               0,
		"[clamp: {max: 9}]":                               0,
		"[]":                                              0,
		"[zero_extend]":                                   0, // bounded by its type alone
		"[zero_extend, clamp: {max: 9}]":                  10,
		"[sigrid_hash: {max: 100}, zero_extend]":          100,
		"[positive_modulus: 5000, sigrid_hash: {max: 7}]": 7,
		"[sigrid_hash: {max: 100}, fill_null: 200]":       201,
		"[sigrid_hash: {max: 100}, fill_null: -1]":        0,
		"[sigrid_hash: {max: 9223372036854775807}]":       math.MaxInt64,
	} {
		r, _, err := lower("sparse: [{columns: [i], ops: "+doc+"}]", zoo())
		require.NoError(t, err, doc)
		assert.Equal(t, want, r.Keys[0].NumEmbeddings, doc)
		assert.Len(t, r.Notes(), map[bool]int{true: 1, false: 0}[want == 0], doc)
	}
}

// int32 is taken when every id fits, at the bound and one above.
func TestIDs(t *testing.T) {
	for doc, fits := range map[string]bool{
		"columns: [i], ops: [sigrid_hash: {max: 2147483648}]":             true,
		"columns: [i], ops: [sigrid_hash: {max: 2147483649}]":             false,
		"columns: [i], ops: [positive_modulus: 2147483648]":               true,
		"columns: [i], ops: [positive_modulus: 2147483649]":               false,
		"columns: [i], ops: [clamp: {min: -2147483648, max: 2147483647}]": true,
		"columns: [i], ops: [clamp: {min: -2147483649, max: 2147483647}]": false,
		"columns: [i], ops: [clamp: {min: -2147483648, max: 2147483648}]": false,
		"columns: [i], ops: [bucketize: {borders: [1]}]":                  true,
		"columns: [i]":     false,
		"columns: [label]": true, // an int32 column
		"columns: [i8]":    true,
		"columns: [u32]":   false,
		"columns: [u32], ops: [clamp: {max: 2147483647}]":                      true,
		"columns: [i8], ops: [zero_extend]":                                    false, // -1 becomes 4294967295
		"columns: [i8], ops: [clamp: {min: 0}, zero_extend]":                   true,
		"columns: [s], ops: [hex_to_int]":                                      false,
		"columns: [i], ops: [sigrid_hash: {max: 5}, fill_null: 2147483648]":    false,
		"columns: [list], ops: [firstx: 2, sigrid_hash: {max: 5}]":             true,
		"columns: [i], ops: [clamp: {max: 0}, clamp: {min: 10}]":               true, // a point
		"columns: [i8], ops: [clamp: {min: 3000000000}]":                       false,
		"columns: [i8], ops: [clamp: {min: 3000000000}, clamp: {max: 100000}]": true,
	} {
		_, p, err := lower("ids: auto\nsparse: [{"+doc+"}]", zoo())
		require.NoError(t, err, doc)
		assert.Equal(t, map[bool]program.IDs{true: program.IDs32, false: program.IDs64}[fits], p.Output.IDs, doc)
		_, p, err = lower("ids: int32\nsparse: [{"+doc+"}]", zoo())
		if !fits {
			assert.ErrorIs(t, err, problem.ErrIDs, doc)
			continue
		}
		require.NoError(t, err, doc)
		assert.Equal(t, program.IDs32, p.Output.IDs)
	}
}

// "auto" is another way to write the type that it chooses: the same program and the same digest. One key whose ids may
// not fit decides for all, and a pipeline without keys has no ids.
func TestIDsThatFitAreAnotherWayToWriteTheirType(t *testing.T) {
	for doc, chosen := range map[string]string{
		"sparse: [{columns: [i8]}, {columns: [i], ops: [sigrid_hash: {max: 9}]}]": "int32",
		"sparse: [{columns: [i8]}, {columns: [i]}]":                               "int64",
		"label: {column: label}":                                                  "int64",
	} {
		auto, p, err := lower("ids: auto\n"+doc, zoo())
		require.NoError(t, err, doc)
		said, q, err := lower("ids: "+chosen+"\n"+doc, zoo())
		require.NoError(t, err, doc)
		assert.Equal(t, said.Canonical(), auto.Canonical(), doc)
		assert.Equal(t, q, p, doc)
	}
}

// The type of dense is part of the identity, unless there are no dense features or it is float32.
func TestDenseType(t *testing.T) {
	const doc = "dense: [{columns: [f]}]\nsparse: [{columns: [i]}]"
	r, p, err := lower("dense_type: bfloat16\n"+doc, zoo())
	require.NoError(t, err)
	assert.Equal(t, program.DenseBFloat16, p.Output.DenseType)
	assert.Equal(t, tensor.BFloat16, r.Schema().DenseType)
	assert.Contains(t, string(r.Canonical()), `"ids":"int64","fixed":true,"dense_type":"bfloat16",`)
	plain, _, err := lower(doc, zoo())
	require.NoError(t, err)
	said, _, err := lower("dense_type: float32\n"+doc, zoo())
	require.NoError(t, err)
	assert.Equal(t, plain.Canonical(), said.Canonical())
	assert.NotEqual(t, plain.Digest(), r.Digest())
	keys, p, err := lower("dense_type: bfloat16\nsparse: [{columns: [i]}]", zoo())
	require.NoError(t, err)
	assert.Equal(t, program.DenseFloat32, p.Output.DenseType)
	assert.NotContains(t, string(keys.Canonical()), "dense_type")
}

// The keys of a group that is deduplicated are a set; sets are numbered over sparse and generated groups, and are part
// of the identity only where they are. The program does not know of them: the worker deduplicates.
func TestSets(t *testing.T) {
	const doc = "sparse: [{columns: [i8, i], deduplicate: %s}, {columns: [list]}, " +
		"{columns: [c_0], deduplicate: %[1]s}]\n" +
		"generated: [{columns: [f], as: b, deduplicate: %[1]s, ops: [bucketize: {borders: [1]}]}]"
	r, p, err := lower(fmt.Sprintf(doc, "true"), zoo())
	require.NoError(t, err)
	var sets []int
	for _, key := range r.Schema().Keys {
		sets = append(sets, key.Set)
	}
	assert.Equal(t, []int{1, 1, 0, 2, 3}, sets)
	require.NoError(t, r.Schema().Validate())
	assert.Contains(t, string(r.Canonical()), `{"name":"i","column":"i","set":1,"kind"`)
	plain, q, err := lower(fmt.Sprintf(doc, "false"), zoo())
	require.NoError(t, err)
	assert.NotContains(t, string(plain.Canonical()), `"set"`)
	assert.NotEqual(t, plain.Digest(), r.Digest())
	assert.Equal(t, q, p)
	apart, _, err := lower("sparse: [{columns: [i8], deduplicate: true}, {columns: [i], deduplicate: true}]", zoo())
	require.NoError(t, err)
	together, _, err := lower("sparse: [{columns: [i8, i], deduplicate: true}]", zoo())
	require.NoError(t, err)
	assert.NotEqual(t, apart.Digest(), together.Digest())
}

func TestFixed(t *testing.T) {
	for doc, fixed := range map[string]bool{
		"[{columns: [i]}]":                           true,
		"[{columns: [i_null]}]":                      false,
		"[{columns: [i_null], ops: [fill_null: 0]}]": true,
		"[{columns: [i_null], ops: [sigrid_hash: {max: 3}, fill_null: 0]}]": true,
		"[{columns: [i, list]}]":                            false,
		"[{columns: [s], ops: [hex_to_int]}]":               false,
		"[{columns: [s], ops: [hex_to_int, fill_null: 0]}]": true,
		"[{columns: [i]}, {columns: [i_null]}]":             false,
	} {
		r, p, err := lower("sparse: "+doc, zoo())
		require.NoError(t, err, doc)
		assert.Equal(t, fixed, p.Output.Fixed, doc)
		assert.Equal(t, fixed, r.Fixed(), doc)
		assert.Equal(t, fixed, r.Schema().Fixed(), doc)
	}
}

func TestTextSchema(t *testing.T) {
	with, without := columntypes.TextSchema(false), columntypes.TextSchema(true)
	assert.Len(t, with, 40)
	assert.Equal(t, with[1:], without)
	for i, c := range with {
		assert.Equal(t, uint16(i), c.Field)
		assert.Equal(t, i > 0, c.Nullable)
	}
	for _, c := range columntypes.BinarySchema() {
		assert.False(t, c.Nullable)
	}

	doc := "dense: [{columns: [int_0..int_12], ops: [fill_null: 0]}]\nsparse: [{columns: [cat_0]}]\n"
	_, p, err := lower(doc+"label: {column: label}", with)
	require.NoError(t, err)
	assert.True(t, p.Label)
	assert.Equal(t, program.CriteoTSV, p.Source)
	assert.Equal(t, uint16(14), p.Columns[0].Field)
	_, p, err = lower(doc, without)
	require.NoError(t, err)
	assert.False(t, p.Label)
	_, _, err = lower(doc+"label: {column: label}", without)
	require.ErrorIs(t, err, problem.ErrMissingColumn)
	_, p, err = lower(doc+"label: {column: label}", columntypes.BinarySchema())
	require.NoError(t, err)
	assert.Equal(t, program.CriteoBinary, p.Source)
	assert.True(t, p.Output.Fixed)
}

// TestListsOfTextAreNotFilledUp checks both sides of the limit: a row of text has room for one id a key.
func TestListsOfTextAreNotFilledUp(t *testing.T) {
	const doc = "sparse: [{inputs: [cat_0, cat_1], as: x, ops: [id_list_transform, list_slice: {start: -%d, pad: 0}]}]"
	_, _, err := lower(fmt.Sprintf(doc, 1), columntypes.TextSchema(true))
	require.NoError(t, err)
	_, _, err = lower(fmt.Sprintf(doc, 2), columntypes.TextSchema(true))
	require.ErrorIs(t, err, problem.ErrColumnType)
	require.ErrorContains(t, err, "a row of text makes at most one id a key, and this fills lists up to 2; leave pad "+
		"out, or")
}

func TestMalformedRows(t *testing.T) {
	s, err := pipeline.Parse([]byte("label: {column: label}\nsparse: [{columns: [cat_0], ops: [fill_null: 0]}]"))
	require.NoError(t, err)
	r, err := resolve.Pipeline(s, columntypes.TextSchema(false))
	require.NoError(t, err)
	failing := r.Digest()
	r.Malformed = program.MalformedDrop
	assert.NotEqual(t, failing, r.Digest(), "what becomes of malformed rows is part of the identity")
	p, _, err := lowering.Lower(r)
	require.NoError(t, err)
	assert.Equal(t, program.MalformedDrop, p.Malformed)
	r.Malformed = program.MalformedNull
	_, _, err = lowering.Lower(r)
	require.ErrorIs(t, err, problem.ErrNull, "a row of nulls has no label")

	r, err = resolve.Pipeline(s, columntypes.BinarySchema())
	require.NoError(t, err)
	r.Malformed = program.MalformedDrop
	_, _, err = lowering.Lower(r)
	require.EqualError(t, err, "pipeline: wrong value: malformed rows are a matter of text, and the dataset is "+
		"criteo-bin")
}

func TestSchemasThatAreRefused(t *testing.T) {
	s, err := pipeline.Parse([]byte("dense: [{columns: [i]}]"))
	require.NoError(t, err)
	_, err = resolve.Pipeline(s, []columntypes.Column{{Name: "i", Kind: program.Int64}, {Name: "i",
		Kind: program.Float32}})
	require.EqualError(t, err,
		`pipeline: line 1:9: dense[0]: column "i": column cannot be read: the dataset has several columns of this name`)
	_, err = resolve.Pipeline(s, []columntypes.Column{{Name: "i", Kind: program.Int64}, {Name: "j"}, {Name: "j"}})
	require.NoError(t, err, "columns that the pipeline does not name do not matter")
	_, err = resolve.Pipeline(s, []columntypes.Column{{Name: "i", Kind: program.Int64}, {Name: "j", Kind: program.Int64,
		Source: program.CriteoTSV}})
	require.ErrorIs(t, err, problem.ErrUnsupported)
	_, err = resolve.Pipeline(s, []columntypes.Column{{Name: "i"}})
	require.ErrorIs(t, err, problem.ErrUnsupported)
	_, err = resolve.Pipeline(s, nil)
	require.ErrorIs(t, err, problem.ErrMissingColumn)
}

// Two ways to write one pipeline have one canonical form, and every change that changes a mini-batch changes the
// canonical form.
func TestCanonical(t *testing.T) {
	canonical := func(doc string) string {
		r, _, err := lower(doc, zoo())
		require.NoError(t, err, doc)
		return string(r.Canonical())
	}
	base := canonical("dense: [{columns: [c_0..c_2], ops: [fill_null: 0, log: {add: 1}]}]\nsparse: [{columns: [f], " +
		"ops: [bucketize: {borders: [1, 2]}]}]")
	for name, doc := range map[string]string{
		"a name and a batch": "name: x\nbatch: 7\ndense: [{columns: [c_0..c_2], ops: [fill_null: 0, log: {add: " +
			"1}]}]\nsparse: [{columns: [f], ops: [bucketize: {borders: [1, 2]}]}]",
		"columns one by one": "dense: [{columns: [c_0, c_1], ops: [fill_null: 0, log: {add: 1}]}, {columns: [c_2], " +
			"ops: [fill_null: 0, log: {add: 1}]}]\nsparse: [{columns: [f], ops: [bucketize: {borders: [1, 2]}]}]",
		"numbers of one value": "dense: [{columns: [c_0..c_2], ops: [fill_null: 0x0, log: {add: 1.0}]}]\n" +
			"sparse: [{columns: [f], ops: [bucketize: {borders: [1.0, 2e0]}]}]",
		"defaults given": "ids: int64\ndense: [{columns: [c_0..c_2], as: \"{column}\", ops: [fill_null: " +
			"{value: 0}, log: {add: 1}]}]\nsparse: [{columns: [f], ops: [bucketize: {borders: [1, 2], side: left, " +
			"nan: torcharrow, compare: float32}]}]",
		"in another order": "generated: []\nsparse: [{ops: [bucketize: {borders: [1, 2]}], columns: [f]}]\n" +
			"dense: [{ops: [fill_null: 0, log: {add: 1}], columns: [c_0..c_2]}]",
		"as a generated one": "dense: [{columns: [c_0..c_2], ops: [fill_null: 0, log: {add: 1}]}]\n" +
			"generated: [{columns: [f], ops: [identity, bucketize: {borders: [1, 2]}]}]",
	} {
		assert.Equal(t, base, canonical(doc), name)
	}
	seen := map[string]string{base: "the base"}
	for name, doc := range map[string]string{
		"int32": "ids: int32\ndense: [{columns: [c_0..c_2], ops: [fill_null: 0, log: {add: 1}]}]\n" +
			"sparse: [{columns: [f], ops: [bucketize: {borders: [1, 2]}]}]",
		"another order": "dense: [{columns: [c_0, c_2, c_1], ops: [fill_null: 0, log: {add: 1}]}]\n" +
			"sparse: [{columns: [f], ops: [bucketize: {borders: [1, 2]}]}]",
		"another name": "dense: [{columns: [c_0..c_2], as: \"d{n}\", ops: [fill_null: 0, log: {add: 1}]}]\n" +
			"sparse: [{columns: [f], ops: [bucketize: {borders: [1, 2]}]}]",
		"another fill": "dense: [{columns: [c_0..c_2], ops: [fill_null: 1, log: {add: 1}]}]\n" +
			"sparse: [{columns: [f], ops: [bucketize: {borders: [1, 2]}]}]",
		"another add": "dense: [{columns: [c_0..c_2], ops: [fill_null: 0, log: {add: 1.0000001}]}]\n" +
			"sparse: [{columns: [f], ops: [bucketize: {borders: [1, 2]}]}]",
		"another border": "dense: [{columns: [c_0..c_2], ops: [fill_null: 0, log: {add: 1}]}]\n" +
			"sparse: [{columns: [f], ops: [bucketize: {borders: [1, 2.0000002]}]}]",
		"another side": "dense: [{columns: [c_0..c_2], ops: [fill_null: 0, log: {add: 1}]}]\n" +
			"sparse: [{columns: [f], ops: [bucketize: {borders: [1, 2], side: right}]}]",
		"another nan": "dense: [{columns: [c_0..c_2], ops: [fill_null: 0, log: {add: 1}]}]\n" +
			"sparse: [{columns: [f], ops: [bucketize: {borders: [1, 2], nan: first}]}]",
		"another compare": "dense: [{columns: [c_0..c_2], ops: [fill_null: 0, log: {add: 1}]}]\n" +
			"sparse: [{columns: [f], ops: [bucketize: {borders: [1, 2], compare: float64}]}]",
		"with a label": "label: {column: label}\ndense: [{columns: [c_0..c_2], ops: [fill_null: 0, log: {add: " +
			"1}]}]\nsparse: [{columns: [f], ops: [bucketize: {borders: [1, 2]}]}]",
	} {
		form := canonical(doc)
		assert.Empty(t, seen[form], "%s and %s", name, seen[form])
		seen[form] = name
	}
}
