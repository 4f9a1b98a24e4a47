package pipeline

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/dataset"
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
func resolveFilter(document string) (*Resolved, error) {
	s, err := Parse([]byte(document))
	if err != nil {
		return nil, err
	}
	return s.Resolve(zoo())
}

func TestFiltersOfADocument(t *testing.T) {
	s, err := Parse([]byte(filterDocument))
	require.NoError(t, err)
	for _, written := range [][]byte{s.YAML(), s.JSON()} {
		again, err := Parse(written)
		require.NoError(t, err, "%s", written)
		assert.Equal(t, string(s.JSON()), string(again.JSON()))
		require.Len(t, again.Filter.All, 5)
		assert.Equal(t, Comparison{Operator: "in", Values: []Number{Int(4), Int(1), Int(4), Int(2)},
			Pos: again.Filter.All[0].Comparisons[0].Pos}, again.Filter.All[0].Comparisons[0])
		assert.Equal(t, "not_null", again.Filter.All[4].Comparisons[0].Operator)
	}
	r, err := s.Resolve(zoo())
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
	assert.Equal(t, `{"condition":{"all":[{"key":0,"in":[[1,2],[4,4]]},`+
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
		`{"name":"k5","column":"s_null","kind":"bytes","list":false,"ops":[{"hash_bytes":{"function":"xxh3"}}]}]}`,
		string((&canonical{}).filter(pass).b))
	assert.Contains(t, string(r.Canonical()), `,"filter":{"condition":`)
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
	s, err := Parse([]byte("sparse: [{columns: [cat_0]}]\nfilter: {column: int_0, eq: 1}"))
	require.NoError(t, err)
	r, err := s.Resolve(TextSchema(false))
	require.NoError(t, err)
	failing := r.FilterDigest()
	r.Malformed = program.MalformedNull
	assert.NotEqual(t, failing, r.FilterDigest())
}

// TestRealNumbersCompareExactly compares numbers around every constant with their buckets' conditions.
func TestRealNumbersCompareExactly(t *testing.T) {
	constants := []float64{-math.MaxFloat64, -1, math.Nextafter(-1, 0), 0, math.SmallestNonzeroFloat64, 0.1, 1,
		math.Nextafter(1, 2), math.MaxFloat64}
	c := &filterColumn{kind: program.Float64, constants: constants}
	borders := c.borders()
	bucket := func(x float64) (n int64) { // the definition of bucketize with side: right and nan: first
		for _, b := range borders {
			if b <= x {
				n++
			}
		}
		return n
	}
	numbers := []float64{math.NaN(), math.Inf(-1), math.Inf(1), math.Copysign(0, -1), 0.5, -2}
	for _, x := range constants {
		numbers = append(numbers, x, math.Nextafter(x, math.Inf(1)), math.Nextafter(x, math.Inf(-1)))
	}
	compare := map[string]func(a, b float64) bool{
		"eq": func(a, b float64) bool { return a == b }, "ne": func(a, b float64) bool { return a != b },
		"lt": func(a, b float64) bool { return a < b }, "le": func(a, b float64) bool { return a <= b },
		"gt": func(a, b float64) bool { return a > b }, "ge": func(a, b float64) bool { return a >= b },
		"in": func(a, b float64) bool { return a == b },
	}
	for operator, holds := range compare {
		for _, constant := range constants {
			ranges := c.condition(&Comparison{Operator: operator, Values: []Number{Real(constant)}}).Ranges
			for _, x := range numbers {
				in := false
				for _, r := range ranges {
					in = in || bucket(x) >= r.Least && bucket(x) <= r.Greatest
				}
				assert.Equal(t, holds(x, constant), in, "%g %s %g", x, operator, constant)
			}
		}
	}
	for _, unsigned := range []bool{false, true} {
		whole := &filterColumn{kind: program.Int64, unsigned: unsigned}
		for operator, holds := range compare {
			for _, constant := range []int64{math.MinInt64, -1, 0, 7, math.MaxInt64} {
				ranges := whole.condition(&Comparison{Operator: operator, Values: []Number{Int(constant)}}).Ranges
				for _, x := range []int64{math.MinInt64, math.MinInt64 + 1, -2, -1, 0, 1, 6, 7, 8, math.MaxInt64 - 1,
					math.MaxInt64} {
					in := false
					for _, r := range ranges {
						in = in || x >= r.Least && x <= r.Greatest
					}
					order := float64(0)
					if unsigned && x < 0 { // it is at least 2^63, more than any constant
						order = 1
					} else if x < constant {
						order = -1
					} else if x > constant {
						order = 1
					}
					assert.Equal(t, holds(order, 0), in, "%d %s %d", x, operator, constant)
				}
			}
		}
	}
}

// TestBadFilters checks every refusal, with its place.
func TestBadFilters(t *testing.T) {
	deep := strings.Repeat("{not: ", maxFilterDepth) + "{column: i, eq: 1}" + strings.Repeat("}", maxFilterDepth)
	wide := "{any: [" + strings.Repeat("{column: i, eq: 1}, ", MaxFilterTests) + "]}"
	for _, c := range []struct {
		name, filter string
		is           error
		want         string
	}{
		{"no mapping", "[1]", ErrValue, "line 2:9: filter: wrong value: a list, want a mapping of all, any, not"},
		{"nothing", "{}", ErrValue, "line 2:9: filter: wrong value: want one of all, any, not, sampling, and column"},
		{"two forms", "{all: [{column: i, eq: 1}], column: i, eq: 1}", ErrValue, "want one of all, any"},
		{"no comparison", "{column: i}", ErrMissing, "filter: missing: a comparison: eq, ne, lt, le, gt, ge, in, null"},
		{"no column", "{eq: 1}", ErrMissingColumn, `filter: missing column: ""`},
		{"unknown key", "{column: i, eqq: 1}", ErrUnknownKey,
			`line 2:21: filter.eqq: unknown key: "eqq"; did you mean "eq"?`},
		{"empty all", "{all: []}", ErrMissing, "filter.all: missing: at least one filter"},
		{"in nothing", "{column: i, in: []}", ErrValue, "filter.in: wrong value: 0 values, want 1 to 65536"},
		{"text", "{column: i, eq: DE}", ErrValue, `filter.eq: wrong value: the text "DE", want a number`},
		{"infinite", "{column: d, eq: .inf}", ErrValue, "filter.eq: wrong value: .inf, want a finite number"},
		{"not a number", "{column: d, lt: .nan}", ErrValue, "want a finite number"},
		{"null of no truth", "{column: i, null: 1}", ErrValue, "want true or false"},
		{"real for ids", "{all: [{column: i, lt: 1.5}]}", ErrValue,
			`line 2:32: filter.all[0].lt: wrong value: 1.5, want a whole number: the values of "i" are int64`},
		{"too large", "{column: f, lt: 1.0e300}", ErrValue, "does not fit float32"},
		{"missing column", "{column: ii, eq: 1}", ErrMissingColumn, `did you mean "i"?`},
		{"several columns", "{column: 'c_*', eq: 1}", ErrPattern, `"c_*" names 4 columns, want one`},
		{"unreadable", "{column: odd, null: true}", ErrUnsupported, "INT96 is not decoded"},
		{"list", "{not: {column: list, null: true}}", ErrColumnType,
			`line 2:15: filter.not: wrong type of column: "list" has lists`},
		{"strings", "{column: s, eq: 1}", ErrColumnType, "a filter compares numbers, and these are strings"},
		{"sampling of reals", "{sampling: {key: f, rate: 0.5}}", ErrColumnType, "sampling takes ids or strings as its key"},
		{"rate", "{sampling: {key: row, rate: 1.1}}", ErrValue, "filter.sampling: wrong value: rate 1.1, want 0 to 1"},
		{"no rate", "{sampling: {key: row}}", ErrMissing, "filter.sampling: missing: rate"},
		{"no key", "{sampling: {rate: 0.5}}", ErrMissing, "filter.sampling: missing: key"},
		{"salt", "{sampling: {key: row, rate: 0.5, salt: 0.5}}", ErrValue, "filter.sampling.salt: wrong value: 0.5"},
		{"deep", deep, ErrValue, "deeper than 32"},
		{"wide", wide, ErrValue, "the filter has more than 4096 tests"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := resolveFilter("sparse: [{columns: [c_0]}]\nfilter: " + c.filter)
			require.ErrorIs(t, err, c.is)
			assert.ErrorContains(t, err, c.want)
		})
	}
	_, err := resolveFilter("sparse: [{columns: [c_0]}]\nfilter: {column: i, in: [" + strings.Repeat("1, ", MaxFilterSet) +
		"]}")
	require.NoError(t, err, "as many values as there may be")
	for _, limit := range []string{strings.Replace(strings.Replace(deep, "{not: ", "", 1), "}}", "}", 1),
		strings.Replace(wide, "{column: i, eq: 1}, ", "", 1)} {
		_, err := resolveFilter("sparse: [{columns: [c_0]}]\nfilter: " + limit)
		require.NoError(t, err)
	}
	dated := append(zoo(), ColumnInfo{Name: "t", Kind: program.Int64, Logical: "TIMESTAMP(MILLIS)"},
		ColumnInfo{Name: "p", Kind: program.Bytes, Logical: "DECIMAL(38, 2)"})
	for filter, want := range map[string]string{
		"{column: t, gt: 5}":       `the values of "t" are TIMESTAMP(MILLIS): compare a value (values:)`,
		"{column: p, null: false}": "begin with decimal; name a value (values:) that is made so",
	} {
		s, err := Parse([]byte("sparse: [{columns: [c_0]}]\nfilter: " + filter))
		require.NoError(t, err)
		_, err = s.Resolve(dated)
		require.ErrorIs(t, err, ErrColumnType)
		assert.ErrorContains(t, err, want)
	}
	s := &Spec{Sparse: []Group{{Columns: Columns("c_0")}}, Filter: &Filter{Column: "i",
		Comparisons: []Comparison{{Operator: "like", Values: []Number{Int(1)}}}}}
	require.ErrorIs(t, s.Check(), ErrUnknownKey)
	s.Filter.Comparisons = []Comparison{{Operator: "eq", Values: []Number{Int(1)}},
		{Operator: "eq", Values: []Number{Int(2)}}}
	require.ErrorIs(t, s.Check(), ErrDuplicate)
}

// TestFiltersNeedTheirSelection checks who refuses a pipeline with a filter.
func TestFiltersNeedTheirSelection(t *testing.T) {
	r, err := resolveFilter(filterDocument)
	require.NoError(t, err)
	_, _, err = Lower(r)
	require.ErrorIs(t, err, ErrSelection)
	_, err = LowerWithLookups(r)
	require.ErrorContains(t, err, "the rows that pass are not known here")
	_, err = r.LowerBeforeSelection()
	require.NoError(t, err)
	m, err := dataset.NewManifest([]dataset.Partition{{Name: "a", Rows: 3, RowGroups: []int64{3}}})
	require.NoError(t, err)
	bind := func(filter dataset.Digest) {
		b, err := selection.NewBuilder(m, filter)
		require.NoError(t, err)
		require.NoError(t, b.Add(0, 0, []bool{true, false, true}))
		r.selection, err = b.Finish()
		require.NoError(t, err)
	}
	bind(dataset.Digest{1})
	_, err = LowerWithLookups(r)
	require.ErrorContains(t, err, "it was made with another filter")
	bind(r.FilterDigest())
	l, err := LowerWithLookups(r)
	require.NoError(t, err)
	passing, digest, err := l.SelectionOf(m)
	require.NoError(t, err)
	assert.Equal(t, []int64{2}, passing)
	assert.Equal(t, &r.selection.Digest, digest)
	other, err := dataset.NewManifest([]dataset.Partition{{Name: "a", Rows: 4, RowGroups: []int64{4}}})
	require.NoError(t, err)
	_, _, err = l.SelectionOf(other)
	require.ErrorIs(t, err, ErrSelection)
	plain, err := LowerWithLookups(&Resolved{Keys: r.Keys, Source: program.Parquet})
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
		s, err := Parse(fmt.Appendf(nil, "sparse: [{columns: [c_0]}]\nfilter: %s", filter))
		if err != nil || s.Filter == nil {
			return
		}
		for _, written := range [][]byte{s.YAML(), s.JSON()} {
			again, err := Parse(written)
			require.NoError(t, err, "%s", written)
			require.Equal(t, string(s.JSON()), string(again.JSON()))
		}
		r, err := s.Resolve(zoo())
		if err != nil {
			return
		}
		require.NotZero(t, r.FilterDigest())
		_, err = r.LowerBeforeSelection()
		require.NoError(t, err)
		if r.Filter.Spec != nil {
			require.NoError(t, r.Filter.Spec.Check())
		}
	})
}
