package pipeline_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/pipeline/statisticspass"
	"github.com/millrace/millrace/sdk/summary"
)

// numbersOf returns a column of a summary with the least value 1, the greatest 5, the mean 2.5 and the deviation 1.25.
func numbersOf(name string) summary.Column {
	mean, deviation := 2.5, 1.25
	least, greatest := summary.IntegerValue(1), summary.IntegerValue(5)
	return summary.Column{Name: name, Kind: summary.Integers, Statistics: summary.Statistics{Least: &least,
		Greatest: &greatest, Mean: &mean, Deviation: &deviation}}
}

// bindColumns binds a summary of columns as the statistics s.
func bindColumns(t *testing.T, s *pipeline.Spec, columns ...summary.Column) *pipeline.Spec {
	t.Helper()
	bound, err := s.BindStatistics("s", &summary.Summary{Columns: columns}, summary.Digest{7})
	require.NoError(t, err)
	return bound
}

// TestStatisticsBecomeConstants checks that a pipeline with the statistics of a summary is the pipeline with their
// numbers as constants, also when another machine reads its document.
func TestStatisticsBecomeConstants(t *testing.T) {
	s, err := pipeline.Parse([]byte("dense:\n  - {columns: [i, f_null], ops: [normalize: {statistics: s}, fill_null: " +
		"0]}\n" +
		"  - {columns: [d], ops: [min_max: {statistics: s}]}\nstatistics: {s: }\n"))
	require.NoError(t, err)
	_, err = resolve.Pipeline(s, zoo())
	require.ErrorIs(t, err, problem.ErrStatistics)
	require.ErrorContains(t, err,
		`line 2:34: dense[0].ops[0]: columns i, f_null: statistics do not fit: the summary "s" is not given`)

	list := numbersOf("list")
	list.List = true
	text := numbersOf("s_null")
	text.Kind = summary.Hashes
	bound := bindColumns(t, s, numbersOf("i"), numbersOf("d"), numbersOf("f_null"), list, text)
	assert.Nil(t, s.Statistics[0].Values, "the receiver does not change")
	require.Len(t, bound.Statistics[0].Values, 3, "columns without an order, and lists, have no numbers")
	byHand, err := pipeline.Parse([]byte("dense:\n  - {columns: [i, f_null], ops: [normalize: {mean: 2.5, deviation: " +
		"1.25}, fill_null: 0]}\n  - {columns: [d], ops: [min_max: {min: 1, max: 5}]}\n"))
	require.NoError(t, err)
	want, err := resolve.Pipeline(byHand, zoo())
	require.NoError(t, err)
	yaml, err := pipeline.Parse(bound.YAML())
	require.NoError(t, err)
	json, err := pipeline.Parse(bound.JSON())
	require.NoError(t, err)
	for _, one := range []*pipeline.Spec{bound, yaml, json} {
		assert.Equal(t, summary.Digest{7}, one.Statistics[0].Summary)
		r, err := resolve.Pipeline(one, zoo())
		require.NoError(t, err)
		assert.Equal(t, string(want.Canonical()), string(r.Canonical()))
		wantProgram, _, err := lowering.Lower(want)
		require.NoError(t, err)
		p, _, err := lowering.Lower(r)
		require.NoError(t, err)
		assert.Equal(t, wantProgram.String(), p.String())
	}
	by := pipeline.With("statistics", pipeline.Text("s"))
	built := &pipeline.Spec{Batch: pipeline.DefaultBatch, Dense: []pipeline.Group{
		{Columns: pipeline.Columns("i", "f_null"), Ops: []pipeline.Op{pipeline.Normalize(by),
			pipeline.FillNull(pipeline.Int(0))}},
		{Columns: pipeline.Columns("d"), Ops: []pipeline.Op{pipeline.MinMax(by)}}},
		Statistics: []pipeline.NamedStatistics{{Name: "s"}}}
	assert.Equal(t, string(s.YAML()), string(built.YAML()))
}

// TestMediansBecomeConstants checks fill_median against fill_null, and that numbers that no operator takes stay out of
// the document.
func TestMediansBecomeConstants(t *testing.T) {
	s, err := pipeline.Parse([]byte("dense:\n  - {columns: [i_null], ops: [fill_median: s]}\n" +
		"  - {columns: [f_null], ops: [fill_median: {statistics: s}]}\nstatistics: {s: }\n"))
	require.NoError(t, err)
	with := func(name string, median float64) summary.Column {
		c := numbersOf(name)
		c.Quantiles = make([]summary.Value, summary.Quantiles)
		c.Quantiles[summary.Quantiles/2] = summary.RealValue(median)
		return c
	}
	bound := bindColumns(t, s, with("i_null", 3), with("f_null", 2.5))
	byHand, err := pipeline.Parse([]byte("dense:\n  - {columns: [i_null], ops: [fill_null: 3]}\n" +
		"  - {columns: [f_null], ops: [fill_null: 2.5]}\n"))
	require.NoError(t, err)
	want, err := resolve.Pipeline(byHand, zoo())
	require.NoError(t, err)
	read, err := pipeline.Parse(bound.YAML())
	require.NoError(t, err)
	for _, one := range []*pipeline.Spec{bound, read} {
		r, err := resolve.Pipeline(one, zoo())
		require.NoError(t, err)
		assert.Equal(t, string(want.Canonical()), string(r.Canonical()))
	}
	built := &pipeline.Spec{Batch: pipeline.DefaultBatch, Dense: []pipeline.Group{{Columns: pipeline.Columns("i_null"),
		Ops: []pipeline.Op{pipeline.FillMedian("s")}},
		{Columns: pipeline.Columns("f_null"), Ops: []pipeline.Op{pipeline.FillMedian("s")}}},
		Statistics: []pipeline.NamedStatistics{{Name: "s"}}}
	assert.Equal(t, string(s.YAML()), string(built.YAML()))

	for says, columns := range map[string][]summary.Column{
		`has no median of i_null`:                                 {numbersOf("i_null"), with("f_null", 1)},
		`the median of i_null in "s" is 9.007199254740994e+15`:    {with("i_null", 1<<53+2), with("f_null", 1)},
		`the median of i_null in "s" is 9.007199254740992e+15`:    {with("i_null", 1<<53), with("f_null", 1)},
		`the median of i_null in "s" is 0.5, want a whole number`: {with("i_null", 0.5), with("f_null", 1)},
		`"s" has no statistics of "f_null"`:                       {with("i_null", 1<<53-1)},
	} {
		_, err := resolve.Pipeline(bindColumns(t, s, columns...), zoo())
		require.ErrorIs(t, err, problem.ErrStatistics, says)
		require.ErrorContains(t, err, says)
		if says[0] != '"' {
			require.NotContains(t, err.Error(), "f_null")
		}
	}
	for document, says := range map[string]string{
		"dense: [{columns: [f_null], ops: [fill_median: s, normalize: {statistics: s}]}]\n" +
			"statistics: {s: }\n": `line 1:51: dense[0].ops[1]: column "f_null"`,
		"values: [{as: v, from: f_null, ops: [fill_median: s]}]\n" +
			"dense: [{columns: [v], ops: [log, min_max: {statistics: s}]}]\n" +
			"statistics: {s: }\n": `line 2:35: dense[0].ops[1]: column "v"`,
	} {
		chained, err := pipeline.Parse([]byte(document))
		require.NoError(t, err)
		_, _, err = statisticspass.OfOperators(chained, "s", zoo())
		require.ErrorIs(t, err, problem.ErrStatistics)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, "and so does fill_median before it")
	}
	other, err := pipeline.Parse([]byte("dense: [{columns: [i], ops: [normalize: {statistics: s}]}]\nstatistics: {s: }\n"))
	require.NoError(t, err)
	assert.NotContains(t, string(bindColumns(t, other, with("i", 3)).YAML()), "median")
}

// TestStatisticsOfAnotherName checks that statistics are bound by a name that the pipeline has.
func TestStatisticsOfAnotherName(t *testing.T) {
	s, err := pipeline.Parse([]byte("dense: [{columns: [i], ops: [normalize: {statistics: s}]}]\nstatistics: {s: }"))
	require.NoError(t, err)
	_, err = s.BindStatistics("t", &summary.Summary{}, summary.Digest{})
	require.ErrorIs(t, err, problem.ErrStatistics)
	require.ErrorContains(t, err, `the pipeline has no statistics "t"`)
}

// TestStatisticsThatLackNumbers checks what is refused when a pipeline meets a schema: statistics without the column,
// or without a number that an operator takes from them.
func TestStatisticsThatLackNumbers(t *testing.T) {
	set := func(change func(s *summary.Statistics)) summary.Column {
		c := numbersOf("i")
		change(&c.Statistics)
		return c
	}
	number := func(x float64) *float64 { return &x }
	const mean, least = "normalize: {statistics: s}", "min_max: {statistics: s}"
	for _, c := range []struct {
		name, ops string
		column    summary.Column
		want      string // "" accepts
	}{
		{"the column", mean, numbersOf("i"), ""},
		{"another column", mean, numbersOf("j"), `"s" has no statistics of "i"`},
		{"behind an operator", "log: {add: 1}, " + mean, numbersOf("i"), `"s" has no statistics of i behind log (`},
		{"no finite value", mean, set(func(s *summary.Statistics) { s.Mean, s.Deviation = nil, nil }),
			`"s" has no mean of i: no value is finite`},
		{"one value", mean, set(func(s *summary.Statistics) { s.Deviation = nil }), "has no deviation of i"},
		{"equal values", mean, set(func(s *summary.Statistics) { s.Deviation = number(0) }), ""},
		{"the least normal deviation", mean, set(func(s *summary.Statistics) { s.Deviation = number(0x1p-126) }), ""},
		{"a subnormal deviation", mean, set(func(s *summary.Statistics) { s.Deviation = number(0x1p-127) }),
			"the deviation of i in"},
		{"a negative deviation", mean, set(func(s *summary.Statistics) { s.Deviation = number(-1) }), "want at least 0"},
		{"a mean beyond float32", mean, set(func(s *summary.Statistics) { s.Mean = number(1e39) }), "the mean of i in"},
		{"a mean that is not a number", mean, set(func(s *summary.Statistics) { s.Mean = number(math.NaN()) }),
			"the mean of i in"},
		{"no least value", least, set(func(s *summary.Statistics) { s.Least = nil }), "has no least value of i"},
		{"a range", least, numbersOf("i"), ""},
		{"a range that descends", least, set(func(s *summary.Statistics) { s.Least, s.Greatest = s.Greatest, s.Least }),
			"above the greatest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := pipeline.Parse([]byte("dense: [{columns: [i], ops: [" + c.ops + "]}]\nstatistics: {s: }"))
			require.NoError(t, err)
			_, err = resolve.Pipeline(bindColumns(t, s, c.column), zoo())
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, problem.ErrStatistics)
			assert.ErrorContains(t, err, c.want)
			assert.ErrorContains(t, err, "line 1:")
		})
	}
}

// TestTheStatisticsOfAPipeline checks the pass that makes what operators take statistics of.
func TestTheStatisticsOfAPipeline(t *testing.T) {
	schema := append(zoo(), columntypes.Column{Name: "half", Kind: program.Bytes, Logical: "FLOAT16"},
		columntypes.Column{Name: "price", Kind: program.Bytes, Logical: "DECIMAL(9, 2)"},
		columntypes.Column{Name: "m", Kind: program.Float32, Map: columntypes.Map{Keys: "m.k", Values: "m.v"},
			Nullable: true})
	s, err := pipeline.Parse([]byte(`label: {column: label, ops: [min_max: {statistics: s}]}
batch: 77
values:
  - {as: small, from: i_null, ops: [fill_null: 0, min_max: {statistics: first}]}
  - {as: cross, inputs: [c_0, c_1], ops: [hash_cross: {buckets: 9}]}
dense:
  - {columns: [i, half], ops: [normalize: {statistics: s}]}
  - {columns: [price], ops: [decimal: float64, normalize: {statistics: s}]}
  - {columns: [f_null], ops: [log: {add: 1}, normalize: {statistics: s}, fill_null: 0]}
  - {columns: [small], ops: [log: {add: 2}, normalize: {statistics: s}]}
  - {columns: [cross], ops: [normalize: {statistics: s}]}
  - {columns: ["m[7]"], ops: [normalize: {statistics: s}, fill_null: 0]}
  - {inputs: [c_2, c_10], as: pair, ops: [hash_cross: {buckets: 9}, normalize: {statistics: s}]}
  - {columns: [i], as: again, ops: [min_max: {statistics: s}]}
sparse: [{columns: [i], ops: [vocabulary: v]}]
vocabularies: {v: }
statistics: {s: , first: }
filter: {column: i, gt: 3}
`))
	require.NoError(t, err)
	_, _, err = statisticspass.OfOperators(s, "s", schema)
	require.ErrorContains(t, err, `the summary "first" is not given`)
	first, columns, err := statisticspass.OfOperators(s, "first", schema)
	require.NoError(t, err)
	require.Len(t, columns, 1)
	assert.Equal(t, "i_null behind fill_null", columns[0].Name[:len("i_null behind fill_null")])
	_, err = resolve.Pipeline(first, schema)
	require.NoError(t, err)

	bound, err := s.BindStatistics("first", &summary.Summary{Columns: []summary.Column{numbersOf(columns[0].Name)}},
		summary.Digest{})
	require.NoError(t, err)
	pass, columns, err := statisticspass.OfOperators(bound, "s", schema)
	require.NoError(t, err)
	type want struct {
		name, of string
		kind     summary.Kind
		dense    int
		key      int
	}
	var found []want
	for _, c := range columns {
		name := c.Name
		if name[len(name)-1] == ')' {
			name = name[:len(name)-len(" (0123456789ab)")]
		}
		found = append(found, want{name, c.Type, c.Kind, c.Dense, c.Key})
	}
	assert.Equal(t, []want{
		{"label", "int64", summary.Integers, -1, 0},
		{"i", "int64", summary.Integers, -1, 1},
		{"half", "float32", summary.Reals, 0, -1},
		{"price", "float64", summary.Reals, -1, 2},
		{"f_null behind log", "float32", summary.Reals, 1, 5},
		{"i_null behind fill_null, min_max, log", "float32", summary.Reals, 2, -1},
		{"c_0 x c_1", "int64", summary.Integers, -1, 3},
		{"m[7]", "float32", summary.Reals, 3, 6},
		{"c_2 x c_10", "int64", summary.Integers, -1, 4},
	}, found)
	assert.Equal(t, []int{77, 0}, []int{pass.Batch, len(pass.Vocabularies)})
	assert.Equal(t, s.Filter, pass.Filter)
	assert.Len(t, pass.Statistics, 1)
	r, err := resolve.Pipeline(pass, schema)
	require.NoError(t, err)
	r.Filter = nil
	_, _, err = lowering.Lower(r)
	require.NoError(t, err, "no null reaches a dense feature")

	// The names under which the pass has its values are those that the pipeline looks for.
	var made []summary.Column
	for _, c := range columns {
		made = append(made, numbersOf(c.Name))
	}
	bound = bindColumns(t, bound, made...)
	rest, ok := bound.WithoutVocabularies()
	require.True(t, ok)
	_, err = resolve.Pipeline(rest, schema)
	require.NoError(t, err)
	_, _, err = statisticspass.OfOperators(s, "other", schema)
	require.ErrorIs(t, err, problem.ErrStatistics)
}
