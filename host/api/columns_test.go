package api

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

func TestColumnsTravel(t *testing.T) {
	columns := append(columntypes.TextSchema(false),
		columntypes.Column{Name: "l", Source: program.Parquet, Kind: program.Float64, List: true,
			ElementNullable: true, Nullable: true},
		columntypes.Column{Name: "m", Source: program.Parquet, Kind: program.Int64, List: true, Nullable: true,
			Map: columntypes.Map{Keys: "m.key_value.key", Values: "m.v.key", Scores: "m.v.value",
				ScoreKind: program.Float32, TextKeys: true}},
		columntypes.Column{Name: "new", Source: program.Parquet, Kind: program.Int64,
			Absent: columntypes.Absence{Partitions: 9, Names: "a.parquet, b.parquet, c.parquet"}},
		columntypes.Column{Name: "bad", Kind: program.Bytes, Unsupported: errors.New("INT96")})
	b, err := EncodeColumns(columns)
	require.NoError(t, err)
	got, err := DecodeColumns(b)
	require.NoError(t, err)
	require.Len(t, got, len(columns))
	last := len(columns) - 1
	assert.Equal(t, columns[:last], got[:last])
	require.EqualError(t, got[last].Unsupported, "INT96")
	again, err := EncodeColumns(got)
	require.NoError(t, err)
	assert.Equal(t, b, again)
	_, err = DecodeColumns([]byte(`[{"name":1}]`))
	require.ErrorContains(t, err, "decode columns")
}

// TestColumnsOfFolders checks that an error names a column that stands in the names of folders and in no file.
func TestColumnsOfFolders(t *testing.T) {
	manifest, err := dataset.NewManifest([]dataset.Partition{
		{Name: "day=1/hour=2/a.parquet", Bytes: 9, Rows: 1, RowGroups: []int64{1}},
	})
	require.NoError(t, err)
	d := Dataset{Manifest: manifest, Columns: []columntypes.Column{{Name: "x", Source: program.Parquet}}}
	for document, says := range map[string]string{
		"label: {column: hour}\ndense: [{columns: [x]}]": "hour is part of the names of folders (hour=2)",
		"sparse: [{columns: [day]}]":                     "day is part of the names of folders (day=1)",
		"sparse: [{columns: [month]}]":                   "",
	} {
		spec, err := pipeline.Parse([]byte(document))
		require.NoError(t, err)
		_, err = d.Resolve(spec)
		require.ErrorIs(t, err, problem.ErrMissingColumn)
		require.ErrorContains(t, err, says)
		assert.Equal(t, says != "", strings.Contains(err.Error(), "names of folders"))
	}
}

func FuzzDecodeColumns(f *testing.F) {
	b, err := EncodeColumns(columntypes.BinarySchema())
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte(`[{"name":"a","kind":1,"unsupported":"x"}]`))
	f.Add([]byte(`[{"name":"m","kind":1,"map":{"keys":"k","values":"v","scores":"s","score_kind":2}},` +
		`{"name":"n","map":{"keys":""}}]`))
	f.Add([]byte(`[{"name":"a","kind":1,"absent":{"partitions":2,"names":"x"}},{"name":"b","absent":{"partitions":-1}}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		columns, err := DecodeColumns(b)
		if err != nil {
			return
		}
		b, err = EncodeColumns(columns)
		require.NoError(t, err)
		again, err := DecodeColumns(b)
		require.NoError(t, err)
		require.Equal(t, columns, again)
	})
}
