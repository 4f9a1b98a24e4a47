package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/selection"
)

const filterDocument = `values: [{as: part, from: i, ops: [positive_modulus: 4]}]
sparse: [{columns: [c_0]}]
filter:
  all:
    - {column: i_null, in: [4, 1, 4, 2]}
    - {any: [{column: d, lt: 1.5, ge: -0.0}, {not: {column: f, ne: 0.1}}, {column: part, gt: 2}]}
    - {sampling: {key: row, rate: 0.25, salt: 7}}
    - {sampling: {key: s, rate: 1}}
    - {column: s_null, null: false}
`

// resolveFilter resolves a document's filter over zoo.
func resolveFilter(document string) (*resolve.Resolved, error) {
	s, err := pipeline.Parse([]byte(document))
	if err != nil {
		return nil, err
	}
	return resolve.Pipeline(s, zoo())
}

func TestFiltersOfADocument(t *testing.T) {
	s, err := pipeline.Parse([]byte(filterDocument))
	require.NoError(t, err)
	for _, written := range [][]byte{s.YAML(), s.JSON()} {
		again, err := pipeline.Parse(written)
		require.NoError(t, err, "%s", written)
		assert.Equal(t, string(s.JSON()), string(again.JSON()))
		require.Len(t, again.Filter.All, 5)
		assert.Equal(t, pipeline.Comparison{Operator: "in", Values: []pipeline.Number{pipeline.Int(4), pipeline.Int(1),
			pipeline.Int(4), pipeline.Int(2)},
			Pos: again.Filter.All[0].Comparisons[0].Pos}, again.Filter.All[0].Comparisons[0])
		assert.Equal(t, "not_null", again.Filter.All[4].Comparisons[0].Operator)
	}
	r, err := resolve.Pipeline(s, zoo())
	require.NoError(t, err)
	pass := r.Filter
	require.NotNil(t, pass.Spec)
	var columns []string
	for _, g := range pass.Spec.Sparse {
		columns = append(columns, g.Columns[0].Text)
	}
	assert.Equal(t, []string{"i_null", "d", "f", "part", "s", "s_null"}, columns)
	assert.Len(t, pass.Spec.Values, 1)
	assert.Nil(t, pass.Spec.Filter)
	assert.Equal(t, []selection.Range{{Least: 1, Greatest: 2}, {Least: 4, Greatest: 4}}, pass.Condition.All[0].Ranges)
	assert.Contains(t, string(r.Canonical()), `,"filter":{"condition":{"all":[{"key":0,"in":[[1,2],[4,4]]},`+
		`{"any":[{"all":[{"key":1,"in":[[1,3]]},{"key":1,"in":[[2,9223372036854775807]]}]},`+
		`{"not":{"key":2,"in":[[0,1],[3,9223372036854775807]]}},{"key":3,"in":[[3,9223372036854775807]]}]},`+
		`{"sampling":{"key":"row","rate":"3fd0000000000000","salt":7}},`+
		`{"sampling":{"key":4,"rate":"3ff0000000000000","salt":0}},{"key":5,"null":false}]},"keys":[`+
		`{"name":"k0","column":"i_null","kind":"int64","list":false,"ops":[]},`+
		`{"name":"k1","column":"d","kind":"float64","list":false,"ops":[{"bucketize":{"borders":0,"side":"right",`+
		`"nan":"first","compare":"float64"}}]},`+
		`{"name":"k2","column":"f","kind":"float32","list":false,"ops":[{"bucketize":{"borders":1,"side":"right",`+
		`"nan":"first","compare":"float64"}}]},`+
		`{"name":"k3","column":"i","kind":"int64","list":false,"ops":[{"positive_modulus":{"modulus":4}}]},`+
		`{"name":"k4","column":"s","kind":"bytes","list":false,"ops":[{"hash_bytes":{"function":"xxh3"}}]},`+
		`{"name":"k5","column":"s_null","kind":"bytes","list":false,"ops":[{"hash_bytes":{"function":"xxh3"}}]}]}`)
	without, err := resolveFilter("sparse: [{columns: [c_0]}]")
	require.NoError(t, err)
	assert.NotContains(t, string(without.Canonical()), "filter")
	assert.Zero(t, without.FilterDigest())
}

// TestEqualFiltersAreOne checks that the way of writing does not count, and that what a filter means does.
func TestEqualFiltersAreOne(t *testing.T) {
	digest := func(filter string) dataset.Digest {
		r, err := resolveFilter("sparse: [{columns: [c_0]}]\nfilter: " + filter)
		require.NoError(t, err, filter)
		return r.FilterDigest()
	}
	for _, same := range [][2]string{
		{"{column: i, ge: 1, lt: 5}", "{lt: 5, column: i, ge: 1}"},
		{"{column: i, in: [3, 1, 2]}", "{column: i, in: [1, 2, 3, 3]}"},
		{"{column: i, lt: 5}", "{column: i, le: 4}"},
		{"{column: d, eq: 0}", "{column: d, eq: -0.0}"},
		{"{column: f, eq: 0.1}", "{column: f, eq: 0.10000000149011612}"},
	} {
		assert.Equal(t, digest(same[0]), digest(same[1]), same[0])
	}
	seen := map[dataset.Digest]string{}
	for _, filter := range []string{"{column: i, eq: 1}", "{column: i, ne: 1}", "{column: i8, eq: 1}",
		"{column: d, eq: 1}", "{column: d, eq: 0.1}", "{column: d, lt: 1}", "{not: {column: i, eq: 1}}",
		"{column: i, null: true}", "{column: i, null: false}", "{sampling: {key: row, rate: 0.5}}",
		"{sampling: {key: i, rate: 0.5}}",
		"{sampling: {key: row, rate: 0.5, salt: 1}}", "{sampling: {key: row, rate: 0.25}}"} {
		assert.Empty(t, seen[digest(filter)], filter)
		seen[digest(filter)] = filter
	}
	// What is null depends on the treatment of malformed rows.
	s, err := pipeline.Parse([]byte("sparse: [{columns: [cat_0]}]\nfilter: {column: int_0, eq: 1}"))
	require.NoError(t, err)
	r, err := resolve.Pipeline(s, columntypes.TextSchema(false))
	require.NoError(t, err)
	failing := r.FilterDigest()
	r.Malformed = program.MalformedNull
	assert.NotEqual(t, failing, r.FilterDigest())
}

// TestBadFilters checks the bounds of filters, columns that are not numbers, and filters built in Go.
func TestBadFilters(t *testing.T) {
	deep := strings.Repeat("{not: ", 32) + "{column: i, eq: 1}" + strings.Repeat("}", 32)
	wide := "{any: [" + strings.Repeat("{column: i, eq: 1}, ", pipeline.MaxFilterTests) + "]}"
	for filter, want := range map[string]string{deep: "deeper than 32", wide: "the filter has more than 4096 tests"} {
		_, err := resolveFilter("sparse: [{columns: [c_0]}]\nfilter: " + filter)
		require.ErrorIs(t, err, problem.ErrValue)
		assert.ErrorContains(t, err, want)
	}
	_, err := resolveFilter("sparse: [{columns: [c_0]}]\nfilter: {column: i, in: [" + strings.Repeat("1, ",
		pipeline.MaxFilterSet) +
		"]}")
	require.NoError(t, err, "as many values as there may be")
	for _, limit := range []string{strings.Replace(strings.Replace(deep, "{not: ", "", 1), "}}", "}", 1),
		strings.Replace(wide, "{column: i, eq: 1}, ", "", 1)} {
		_, err := resolveFilter("sparse: [{columns: [c_0]}]\nfilter: " + limit)
		require.NoError(t, err)
	}
	dated := append(zoo(), columntypes.Column{Name: "t", Kind: program.Int64, Logical: "TIMESTAMP(MILLIS)"},
		columntypes.Column{Name: "p", Kind: program.Bytes, Logical: "DECIMAL(38, 2)"})
	for filter, want := range map[string]string{
		"{column: t, gt: 5}":       `the values of "t" are TIMESTAMP(MILLIS): compare a value (values:)`,
		"{column: p, null: false}": "begin with decimal; name a value (values:) that is made so",
	} {
		s, err := pipeline.Parse([]byte("sparse: [{columns: [c_0]}]\nfilter: " + filter))
		require.NoError(t, err)
		_, err = resolve.Pipeline(s, dated)
		require.ErrorIs(t, err, problem.ErrColumnType)
		assert.ErrorContains(t, err, want)
	}
	s := &pipeline.Spec{Sparse: []pipeline.Group{{Columns: pipeline.Columns("c_0")}}, Filter: &pipeline.Filter{Column: "i",
		Comparisons: []pipeline.Comparison{{Operator: "like", Values: []pipeline.Number{pipeline.Int(1)}}}}}
	require.ErrorIs(t, s.Check(), problem.ErrUnknownKey)
	s.Filter.Comparisons = []pipeline.Comparison{{Operator: "eq", Values: []pipeline.Number{pipeline.Int(1)}},
		{Operator: "eq", Values: []pipeline.Number{pipeline.Int(2)}}}
	require.ErrorIs(t, s.Check(), problem.ErrDuplicate)
}

// TestFiltersNeedTheirSelection checks who refuses a pipeline with a filter.
func TestFiltersNeedTheirSelection(t *testing.T) {
	r, err := resolveFilter(filterDocument)
	require.NoError(t, err)
	_, _, err = lowering.Lower(r)
	require.ErrorIs(t, err, problem.ErrSelection)
	_, err = lowering.LowerWithLookups(r)
	require.ErrorContains(t, err, "the rows that pass are not known here")
	_, err = lowering.LowerBeforeSelection(r)
	require.NoError(t, err)
	m, err := dataset.NewManifest([]dataset.Partition{{Name: "a", Rows: 3, RowGroups: []int64{3}}})
	require.NoError(t, err)
	bind := func(filter dataset.Digest) {
		b, err := selection.NewBuilder(m, filter)
		require.NoError(t, err)
		require.NoError(t, b.Add(0, 0, []bool{true, false, true}))
		r.Selection, err = b.Finish()
		require.NoError(t, err)
	}
	bind(dataset.Digest{1})
	_, err = lowering.LowerWithLookups(r)
	require.ErrorContains(t, err, "it was made with another filter")
	bind(r.FilterDigest())
	l, err := lowering.LowerWithLookups(r)
	require.NoError(t, err)
	passing, digest, err := l.SelectionOf(m)
	require.NoError(t, err)
	assert.Equal(t, []int64{2}, passing)
	assert.Equal(t, &r.Selection.Digest, digest)
	other, err := dataset.NewManifest([]dataset.Partition{{Name: "a", Rows: 4, RowGroups: []int64{4}}})
	require.NoError(t, err)
	_, _, err = l.SelectionOf(other)
	require.ErrorIs(t, err, problem.ErrSelection)
	plain, err := lowering.LowerWithLookups(&resolve.Resolved{Keys: r.Keys, Source: program.Parquet})
	require.NoError(t, err)
	passing, digest, err = plain.SelectionOf(m)
	require.NoError(t, err)
	assert.Nil(t, passing)
	assert.Nil(t, digest)
}

func FuzzFilter(f *testing.F) {
	for _, c := range []string{"{column: i, in: [1, 4]}", "{all: [{not: {column: d, lt: 1.5}}]}",
		"{sampling: {key: row, rate: 0.25, salt: 7}}", "{any: [{column: f, null: true}]}", "{column: i, ge: 1, lt: 2}"} {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, filter string) {
		s, err := pipeline.Parse(fmt.Appendf(nil, "sparse: [{columns: [c_0]}]\nfilter: %s", filter))
		if err != nil || s.Filter == nil {
			return
		}
		for _, written := range [][]byte{s.YAML(), s.JSON()} {
			again, err := pipeline.Parse(written)
			require.NoError(t, err, "%s", written)
			require.Equal(t, string(s.JSON()), string(again.JSON()))
		}
		r, err := resolve.Pipeline(s, zoo())
		if err != nil {
			return
		}
		require.NotZero(t, r.FilterDigest())
		_, err = lowering.LowerBeforeSelection(r)
		require.NoError(t, err)
		if r.Filter.Spec != nil {
			require.NoError(t, r.Filter.Spec.Check())
		}
	})
}
