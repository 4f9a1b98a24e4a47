package pipeline_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/pipeline/statisticspass"
	"github.com/millrace/millrace/sdk/summary"
	"github.com/millrace/millrace/sdk/targetencoding"
	"github.com/millrace/millrace/sdk/tensor"
)

// bindTargets binds a summary with the labels of every value that target encodings of a spec take, of keys 1 and 2.
func bindTargets(t *testing.T, s *pipeline.Spec, folds int) *pipeline.Spec {
	t.Helper()
	_, columns, err := statisticspass.OfOperators(s, "s", zoo())
	require.NoError(t, err)
	var list []summary.Column
	for _, c := range columns {
		require.NotNil(t, c.Folding)
		b := targetencoding.NewBuilder(folds)
		known, err := targetencoding.NewPartition("day=1/a")
		require.NoError(t, err)
		require.NoError(t, b.AddPartition(known))
		require.NoError(t, b.Add(1, true, 0, 1))
		require.NoError(t, b.Add(2, true, 1, 0))
		list = append(list, summary.Column{Name: c.Name, Kind: summary.Integers, Targets: b.Table()})
	}
	return bindColumns(t, s, list...)
}

const targetDocument = `label: {column: label}
dense:
  - {columns: [f], ops: [log]}
  - {columns: [i_null, c_0], ops: [positive_modulus: 100, target_encoding: {statistics: s}]}
  - {columns: [d]}
sparse: [{columns: [c_1], ops: [positive_modulus: 9]}]
statistics: {s: }
`

// TestTargetEncodingsAreLowered: the drive makes the keys, and the host puts them in their places among the dense
// features.
func TestTargetEncodingsAreLowered(t *testing.T) {
	s, err := pipeline.Parse([]byte(targetDocument))
	require.NoError(t, err)
	pass, columns, err := statisticspass.OfOperators(s, "s", zoo())
	require.NoError(t, err)
	require.NotNil(t, pass.Label)
	require.Len(t, columns, 2)
	assert.Equal(t, &targetencoding.Folding{Folds: 3, Seed: 42}, columns[0].Folding)
	assert.Regexp(t, `^i_null behind positive_modulus \([0-9a-f]{12}\) with label label \([0-9a-f]{12}\) in 3 folds of `+
		`seed 42$`, columns[0].Name)

	bound := bindTargets(t, s, 3)
	read, err := pipeline.Parse(bound.JSON())
	require.NoError(t, err)
	var digests [][32]byte
	for _, one := range []*pipeline.Spec{bound, read} {
		r, err := resolve.Pipeline(one, zoo())
		require.NoError(t, err)
		digests = append(digests, r.Digest())
		l, err := lowering.LowerWithLookups(r)
		require.NoError(t, err)
		require.NoError(t, l.Program.Validate())
		assert.Equal(t, []string{"f", "d"}, l.Made.Dense)
		assert.Equal(t, []tensor.Key{{Name: "c_1", NumEmbeddings: 9}, {Name: "target_encoding 1", List: true},
			{Name: "target_encoding 2"}}, l.Made.Keys)
		assert.Equal(t, []string{"f", "i_null", "c_0", "d"}, l.Schema.Dense)
		assert.Equal(t, []tensor.Key{{Name: "c_1", NumEmbeddings: 9}}, l.Schema.Keys)
		assert.True(t, l.Schema.Fixed())
		require.Len(t, l.Encodings, 2)
		assert.Equal(t, []int{1, 2}, []int{l.Encodings[0].Dense, l.Encodings[1].Dense})
		assert.Nil(t, l.Lookups)
		_, err = targetencoding.NewApplier(l.Made, l.Encoded, l.Encodings)
		require.NoError(t, err)
		_, _, err = lowering.Lower(r)
		require.ErrorIs(t, err, problem.ErrStatistics)
		r.Malformed = program.MalformedDrop
		_, err = lowering.LowerWithLookups(r)
		require.ErrorIs(t, err, problem.ErrDroppedRows)
	}
	assert.Equal(t, digests[0], digests[1])

	// Ids of the job are int32 where those of the drive are not.
	wide, err := pipeline.Parse([]byte(`ids: int32
label: {column: label}
dense: [{columns: [i], ops: [target_encoding: {statistics: s, mode: serve, p_smooth: 0.5}]}]
sparse: [{columns: [c_1], ops: [positive_modulus: 9]}]
statistics: {s: }
`))
	require.NoError(t, err)
	r, err := resolve.Pipeline(bindTargets(t, wide, 3), zoo())
	require.NoError(t, err)
	l, err := lowering.LowerWithLookups(r)
	require.NoError(t, err)
	assert.Equal(t, []tensor.DType{tensor.Int64, tensor.Int64, tensor.Int32},
		[]tensor.DType{l.Made.IDs, l.Encoded.IDs, l.Schema.IDs})
	assert.Len(t, l.Lookups, 1, "which make int32 of the ids")
	assert.NotContains(t, string(r.Canonical()), `"seed"`, "serving has no folds")
}

// TestPartitionsThatStatisticsDoNotKnow checks that training refuses partitions that the statistics did not count, and
// that serving, which has no folds, takes any.
func TestPartitionsThatStatisticsDoNotKnow(t *testing.T) {
	for _, mode := range []string{"train", "serve"} {
		s, err := pipeline.Parse([]byte(strings.Replace(targetDocument, "statistics: s}", "statistics: s, mode: "+mode+"}",
			1)))
		require.NoError(t, err)
		bound := bindTargets(t, s, 3)
		read, err := pipeline.Parse(bound.JSON())
		require.NoError(t, err)
		r, err := resolve.Pipeline(read, zoo())
		require.NoError(t, err)
		require.NoError(t, r.CheckPartitions(&dataset.Manifest{Partitions: []dataset.Partition{{Name: "day=1/a"}}}))
		err = r.CheckPartitions(&dataset.Manifest{Partitions: []dataset.Partition{{Name: "day=1/a"}, {Name: "a"}}})
		if mode == "serve" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, problem.ErrStatistics)
		assert.ErrorContains(t, err, `"s" was made of other partitions than a (1 of 2)`)
		assert.ErrorContains(t, err, "--root")
	}
}

// TestTargetEncodingsDecideTheDigest: the table, the smoothing, the mode and the seed are part of a job's identity.
func TestTargetEncodingsDecideTheDigest(t *testing.T) {
	digests := map[[32]byte]string{}
	for _, arguments := range []string{"", ", p_smooth: 10", ", mode: serve", ", seed: 43", ", folds: 4"} {
		s, err := pipeline.Parse([]byte("label: {column: label}\ndense: [{columns: [i], ops: [target_encoding: " +
			"{statistics: s" +
			arguments + "}]}]\nstatistics: {s: }\n"))
		require.NoError(t, err)
		folds := 3
		if arguments == ", folds: 4" {
			folds = 4
		}
		r, err := resolve.Pipeline(bindTargets(t, s, folds), zoo())
		require.NoError(t, err, arguments)
		assert.Empty(t, digests[r.Digest()], arguments)
		digests[r.Digest()] = "is that of " + arguments
	}
	built := &pipeline.Spec{Batch: pipeline.DefaultBatch, Dense: []pipeline.Group{{Columns: pipeline.Columns("i"),
		Ops: []pipeline.Op{pipeline.TargetEncoding("s")}}},
		Label: &pipeline.Label{Column: "label"}, Statistics: []pipeline.NamedStatistics{{Name: "s"}}}
	r, err := resolve.Pipeline(bindTargets(t, built, 3), zoo())
	require.NoError(t, err)
	assert.NotEmpty(t, digests[r.Digest()])
}

// TestBadTargetEncodings checks the refusals of statistics that do not fit.
func TestBadTargetEncodings(t *testing.T) {
	// Statistics of other folds, of another label, of another column and of no labels.
	good, err := pipeline.Parse([]byte(targetDocument))
	require.NoError(t, err)
	bound := bindTargets(t, good, 3)
	values := func(s *pipeline.Spec) []pipeline.ValueStatistics { return s.Statistics[0].Values }
	for says, change := range map[string]func(s *pipeline.Spec){
		"in 3 folds: make the summary again": func(s *pipeline.Spec) { s.Statistics = bindTargets(t, good, 4).Statistics },
		"has no labels of":                   func(s *pipeline.Spec) { values(s)[0].Targets = nil },
		`"s" has no statistics of i_null`:    func(s *pipeline.Spec) { s.Label = &pipeline.Label{Column: "i8"} },
		"has no statistics of c_0":           func(s *pipeline.Spec) { s.Statistics[0].Values = values(s)[1:] },
	} {
		one := *bound
		one.Statistics = []pipeline.NamedStatistics{bound.Statistics[0]}
		one.Statistics[0].Values = append([]pipeline.ValueStatistics{}, values(bound)...)
		change(&one)
		_, err := resolve.Pipeline(&one, zoo())
		require.ErrorIs(t, err, problem.ErrStatistics, says)
		require.ErrorContains(t, err, says)
	}
}
