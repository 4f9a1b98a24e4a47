package pipeline_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/pipeline/statisticspass"
	"github.com/millrace/millrace/sdk/summary"
)

// TestStatisticsOfEveryKind checks how the columns of a data set are summarised, and that the pass has a pipeline that
// fits them.
func TestStatisticsOfEveryKind(t *testing.T) {
	schema := []columntypes.Column{
		{Name: "id", Kind: program.Int64},
		{Name: "day", Kind: program.Int64, Logical: "DATE", Nullable: true},
		{Name: "half", Kind: program.Bytes, Logical: "FLOAT16", Nullable: true},
		{Name: "price", Kind: program.Bytes, Logical: "DECIMAL(38, 2)", Nullable: true},
		{Name: "old", Kind: program.Bytes, Logical: "INT96"},
		{Name: "who", Kind: program.Bytes, Logical: "UUID", Nullable: true},
		{Name: "words", Kind: program.Bytes, List: true, Nullable: true},
		{Name: "vector", Kind: program.Float32, List: true},
		{Name: "exact", Kind: program.Float64},
		{Name: "wide", Kind: program.Int64, Unsigned: true},
		{Name: "m", Kind: program.Float32, Map: columntypes.Map{Keys: "m.k", Values: "m.v"}, Nullable: true},
		{Name: "span", Kind: program.Bytes, Logical: "INTERVAL"},
		{Name: "odd", Unsupported: errors.New("a struct\nof structs")},
		{Name: "twice", Kind: program.Int64},
		{Name: "twice", Kind: program.Int64},
	}
	spec, columns, skipped, err := statisticspass.OfColumns(schema, nil)
	require.NoError(t, err)
	_, err = resolve.Pipeline(spec, schema)
	require.NoError(t, err)
	assert.Equal(t, []statisticspass.Column{
		{Name: "id", Type: "int64", Kind: summary.Integers, Dense: -1, Key: 0},
		{Name: "day", Type: "int64 DATE", Kind: summary.Integers, Dense: -1, Key: 1},
		{Name: "half", Type: "bytes FLOAT16", Kind: summary.Reals, Dense: 0, Key: 8},
		{Name: "price", Type: "bytes DECIMAL(38, 2)", Kind: summary.Reals, Dense: -1, Key: 2},
		{Name: "old", Type: "bytes INT96", Kind: summary.Integers, Dense: -1, Key: 3},
		{Name: "who", Type: "bytes UUID", Kind: summary.Hashes, Dense: -1, Key: 4},
		{Name: "words", Type: "list of bytes", Kind: summary.Hashes, List: true, Dense: -1, Key: 5},
		{Name: "vector", Type: "list of float32", Kind: summary.Lengths, List: true, Dense: -1, Key: 9},
		{Name: "exact", Type: "float64", Kind: summary.Reals, Dense: -1, Key: 6},
		{Name: "wide", Type: "int64", Kind: summary.Integers, Unsigned: true, Dense: -1, Key: 7},
	}, columns)
	names := []string{}
	for _, s := range skipped {
		names = append(names, s.Name)
		assert.NotEmpty(t, s.Reason)
	}
	assert.Equal(t, []string{"m", "span", "odd", "twice", "twice"}, names)

	spec, columns, _, err = statisticspass.OfColumns(schema, []string{"m[3..4]", "id", "i*"})
	require.NoError(t, err)
	_, err = resolve.Pipeline(spec, schema)
	require.NoError(t, err)
	require.Len(t, columns, 3)
	assert.Equal(t, statisticspass.Column{Name: "m[4]", Type: "float32", Kind: summary.Reals, Dense: 1, Key: 2},
		columns[1])

	named, err := pipeline.Parse([]byte("dense: [{columns: [wide, id], ops: [min_max: {statistics: s}]}, {columns: " +
		"[wide], as: c, ops: [clamp: {min: 0}, min_max: {statistics: s}]}]\nstatistics: {s: }"))
	require.NoError(t, err)
	_, columns, err = statisticspass.OfOperators(named, "s", schema)
	require.NoError(t, err)
	require.Len(t, columns, 3)
	assert.Equal(t, []bool{true, false, false}, []bool{columns[0].Unsigned, columns[1].Unsigned, columns[2].Unsigned})

	for pattern, says := range map[string]string{"m": "name its features", "odd": "a struct; of structs",
		"span": "INTERVAL", "twice": "several columns", "nothing": "not in the dataset"} {
		_, _, _, err := statisticspass.OfColumns(schema, []string{pattern})
		require.ErrorContains(t, err, says)
	}
	_, _, _, err = statisticspass.OfColumns(schema[11:13], nil)
	require.ErrorContains(t, err, "no column that a pass can summarise; span: an INTERVAL")
}

func TestMatchNames(t *testing.T) {
	names := []string{"label", "int_0", "int_1", "ids[7]"}
	for _, c := range []struct {
		patterns []string
		want     []int
	}{
		{nil, []int{0, 1, 2, 3}},
		{[]string{"int_0..int_1", "label", "int_*"}, []int{1, 2, 0}},
		{[]string{"ids[7]"}, []int{3}},
	} {
		got, err := statisticspass.MatchNames(names, c.patterns)
		require.NoError(t, err)
		assert.Equal(t, c.want, got)
	}
	_, err := statisticspass.MatchNames(names, []string{"cat_1"})
	require.ErrorIs(t, err, problem.ErrMissingColumn)
}
