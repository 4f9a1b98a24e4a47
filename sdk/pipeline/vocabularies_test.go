package pipeline_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// vocabularyDocument is a pipeline with two vocabularies and every key of a declaration.
const vocabularyDocument = `ids: auto
sparse:
  - {columns: [i, u32], ops: [positive_modulus: 5000, vocabulary: piper]}
  - {columns: [i_null], ops: [vocabulary: rare]}
  - {columns: [list], as: "l_{column}", ops: [fill_null: 7, vocabulary: {name: rare}]}
  - {columns: [i8]}
generated:
  - {columns: [f], ops: [bucketize: {borders: [1, 2]}, vocabulary: piper], as: "b_{column}"}
vocabularies:
  piper:
  rare: {order: count, joint: true, base: 9, null_id: 1, rare_id: -2, oov_buckets: 4, min_count: 2, max_size: 100,
    unknown: bucket}
`

// vocabularyOf builds the vocabulary of a pipeline over columns: every table has the keys 3, 1, 4, each twice.
func vocabularyOf(t *testing.T, s *pipeline.Spec, name string, schema []columntypes.Column) *vocabulary.Vocabulary {
	t.Helper()
	keys, declared, err := s.VocabularyKeys(name)
	require.NoError(t, err)
	r, err := resolve.Pipeline(keys, schema)
	require.NoError(t, err)
	columns := r.VocabularyColumns()
	b, err := vocabulary.NewBuilder(columns, declared.Rules, vocabulary.BuilderOptions{})
	require.NoError(t, err)
	for i := range columns {
		require.NoError(t, b.Add(i, 0, []int64{3, 1, 4, 3, 1, 4}, nil))
	}
	path := filepath.Join(t.TempDir(), "v")
	_, err = b.Finish(path)
	require.NoError(t, err)
	v, err := vocabulary.Load(path)
	require.NoError(t, err)
	return v
}

// bindAll binds the vocabularies of the document.
func bindAll(t *testing.T, s *pipeline.Spec) *pipeline.Spec {
	t.Helper()
	for _, name := range []string{"piper", "rare"} {
		bound, err := s.Bind(name, vocabularyOf(t, s, name, zoo()))
		require.NoError(t, err)
		s = bound
	}
	return s
}

func TestVocabulariesOfADocument(t *testing.T) {
	s, err := pipeline.Parse([]byte(vocabularyDocument))
	require.NoError(t, err)
	require.Len(t, s.Vocabularies, 2)
	assert.Equal(t, pipeline.Vocabulary{Name: "piper", Pos: s.Vocabularies[0].Pos}, s.Vocabularies[0])
	assert.Equal(t, pipeline.Vocabulary{Name: "rare", Pos: s.Vocabularies[1].Pos, Unknown: vocabulary.UnknownBucket,
		Rules: vocabulary.Rules{Order: vocabulary.ByCount, Joint: true, Base: 9, Null: vocabulary.SomeID(1),
			Rare: vocabulary.SomeID(-2), Buckets: 4, MinCount: 2, MaxSize: 100}}, s.Vocabularies[1])
	for _, written := range [][]byte{s.YAML(), s.JSON()} {
		again, err := pipeline.Parse(written)
		require.NoError(t, err, "%s", written)
		assert.Equal(t, string(s.YAML()), string(again.YAML()))
		assert.Equal(t, s.Vocabularies[1].Rules, again.Vocabularies[1].Rules)
	}
	assert.Equal(t, pipeline.VocabularyLookup("piper").Args[0].Value, s.Sparse[0].Ops[1].Args[0].Value)
}

// TestLookupsAreLowered lowers a pipeline with vocabularies: the drive makes the keys, the host the ids.
func TestLookupsAreLowered(t *testing.T) {
	s, err := pipeline.Parse([]byte(vocabularyDocument))
	require.NoError(t, err)
	r, err := resolve.Pipeline(bindAll(t, s), zoo())
	require.NoError(t, err)
	assert.Equal(t, program.IDs32, r.IDs)
	_, _, err = lowering.Lower(r)
	require.ErrorIs(t, err, problem.ErrVocabulary)
	l, err := lowering.LowerWithLookups(r)
	require.NoError(t, err)
	assert.Equal(t, program.IDs64, l.Program.Output.IDs, "the keys of i_null are of 64 bits")
	assert.Equal(t, []tensor.Key{{Name: "i"}, {Name: "u32"}, {Name: "i_null", List: true}, {Name: "l_list", List: true},
		{Name: "i8"}, {Name: "b_f"}}, bareKeys(l.Made))
	assert.Equal(t, tensor.Int32, l.Schema.IDs)
	assert.Equal(t, []tensor.Key{{Name: "i", NumEmbeddings: 3}, {Name: "u32", NumEmbeddings: 3}, {Name: "i_null",
		NumEmbeddings: 12}, {Name: "l_list", NumEmbeddings: 12, List: true}, {Name: "i8"}, {Name: "b_f", NumEmbeddings: 3}},
		l.Schema.Keys)
	require.Len(t, l.Lookups, 6)
	assert.Nil(t, l.Lookups[4])
	_, err = vocabulary.NewApplier(l.Made, l.Schema, l.Lookups)
	require.NoError(t, err)

	// Without vocabularies both forms are one.
	plain, err := pipeline.Named("rm1")
	require.NoError(t, err)
	r, err = resolve.Pipeline(plain, columntypes.TextSchema(false))
	require.NoError(t, err)
	l, err = lowering.LowerWithLookups(r)
	require.NoError(t, err)
	assert.Nil(t, l.Lookups)
	assert.Same(t, l.Made, l.Schema)
}

// bareKeys returns a schema's keys without the sizes of tables, which lookups change.
func bareKeys(s *tensor.Schema) []tensor.Key {
	keys := append([]tensor.Key{}, s.Keys...)
	for i := range keys {
		keys[i].NumEmbeddings = 0
	}
	return keys
}

// TestTheDigestNamesTheVocabulary checks that a pipeline's identity contains the file and the policy, and that a
// pipeline without vocabularies keeps its identity.
func TestTheDigestNamesTheVocabulary(t *testing.T) {
	s, err := pipeline.Parse([]byte(vocabularyDocument))
	require.NoError(t, err)
	s = bindAll(t, s)
	r, err := resolve.Pipeline(s, zoo())
	require.NoError(t, err)
	canonical := string(r.Canonical())
	assert.Contains(t, canonical, `{"positive_modulus":{"modulus":5000}},{"vocabulary":{"sha256":"`+
		s.Vocabularies[0].File.Digest.String()+`","unknown":"error"}}`)
	other := *s.Vocabularies[0].File
	other.Digest[0] ^= 1
	bound, err := s.Bind("piper", &other)
	require.NoError(t, err)
	r2, err := resolve.Pipeline(bound, zoo())
	require.NoError(t, err)
	assert.NotEqual(t, r.Digest(), r2.Digest())
	_, err = s.Bind("pipe", &other)
	require.ErrorIs(t, err, problem.ErrVocabulary)
	assert.ErrorContains(t, err, `did you mean "piper"?`)
}

// TestVocabulariesOfOtherPipelines checks files that are absent, of other rules, other operators or other columns.
func TestVocabulariesOfOtherPipelines(t *testing.T) {
	parse := func(doc string) *pipeline.Spec {
		s, err := pipeline.Parse([]byte(doc))
		require.NoError(t, err)
		return s
	}
	s := parse("sparse: [{columns: [i], ops: [positive_modulus: 5000, vocabulary: v]}]\nvocabularies: {v: {base: 1}}")
	file := vocabularyOf(t, s, "v", zoo())
	for _, c := range []struct{ name, doc, want string }{
		{"rules", "sparse: [{columns: [i], ops: [positive_modulus: 5000, vocabulary: v]}]\nvocabularies: {v: {}}",
			`the file for "v" was made with {order: first_seen, base: 1}, and the pipeline says {order: first_seen}`},
		{"operators", "sparse: [{columns: [i], ops: [positive_modulus: 5001, vocabulary: v]}]\nvocabularies: {v: {base: 1}}",
			`column "i": the operators before the vocabulary are not those that made its keys`},
		{"column", "sparse: [{columns: [i, i8], ops: [positive_modulus: 5000, vocabulary: v]}]\nvocabularies: {v: {base: 1}}",
			`it has no column "i8"`},
		{"dense", "dense: [{columns: [i], ops: [positive_modulus: 5000, vocabulary: v]}]\nvocabularies: {v: {base: 1}}",
			"a vocabulary makes ids"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bound, err := parse(c.doc).Bind("v", file)
			require.NoError(t, err)
			_, err = resolve.Pipeline(bound, zoo())
			require.Error(t, err)
			assert.ErrorContains(t, err, c.want)
		})
	}
	_, err := resolve.Pipeline(s, zoo())
	require.ErrorIs(t, err, problem.ErrVocabulary)
	assert.ErrorContains(t, err, "--vocabulary v=FILE")
	_, err = resolve.Pipeline(parse("sparse: [{columns: [f], ops: [vocabulary: v]}]\nvocabularies: {v: {}}"), zoo())
	require.ErrorIs(t, err, problem.ErrColumnType)
	_, _, err = s.VocabularyKeys("w")
	require.ErrorIs(t, err, problem.ErrVocabulary)
}

// TestVocabulariesOfValues builds and applies a vocabulary of values that several columns make, and leaves the values
// out that make none of its keys.
func TestVocabulariesOfValues(t *testing.T) {
	const document = `values:
  - {as: inner, from: i, ops: [positive_modulus: %d]}
  - {as: unused, from: i8, ops: [fill_null: 0]}
sparse:
  - {inputs: [inner, u32], as: cross, ops: [cartesian, positive_modulus: 100, vocabulary: v]}
  - {columns: [inner], as: single, ops: [vocabulary: v]}
  - {columns: [unused]}
vocabularies: {v: {}}
`
	s, err := pipeline.Parse(fmt.Appendf(nil, document, 10))
	require.NoError(t, err)
	keys, _, err := s.VocabularyKeys("v")
	require.NoError(t, err)
	require.NoError(t, keys.Check())
	require.Len(t, keys.Values, 1)
	file := vocabularyOf(t, s, "v", zoo())
	assert.NotEqual(t, file.Columns[0].Chain, file.Columns[1].Chain)
	bound, err := s.Bind("v", file)
	require.NoError(t, err)
	r, err := resolve.Pipeline(bound, zoo())
	require.NoError(t, err)
	l, err := lowering.LowerWithLookups(r)
	require.NoError(t, err)
	assert.Equal(t, int64(3), l.Schema.Keys[0].NumEmbeddings)

	other, err := pipeline.Parse(fmt.Appendf(nil, document, 11))
	require.NoError(t, err)
	bound, err = other.Bind("v", file)
	require.NoError(t, err)
	_, err = resolve.Pipeline(bound, zoo())
	require.ErrorIs(t, err, problem.ErrVocabulary)
	assert.ErrorContains(t, err, "not those that made its keys")
}
