package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	arrowpq "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/partitionfile"
)

// mapPipeline reads features of DPP's three maps.
const mapPipeline = `
name: dpp
batch: 7
label: {column: label}
dense:
  - columns: ["float_features[1..2]"]
    ops: [fill_null: 0]
sparse:
  - columns: ["id_list_features[101, 103]"]
    ops: [firstx: 2]
  - columns: ["id_score_list_features[7]"]
    as: "scored_{n}"
`

// mapFile writes rows with maps as Arrow's writer does (and pyarrow, which shares its naming): row r has label r, float
// features 1: r and, if r is even, 2: -r; lists 101: [r, r+1, r+2] and for every third 103: []; scored 7: {r: r/4} but
// in row 2.
func mapFile(t *testing.T, path string, rows int) {
	id, float := arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float32
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "label", Type: float},
		{Name: "float_features", Type: arrow.MapOf(arrow.PrimitiveTypes.Int32, float), Nullable: true},
		{Name: "id_list_features", Type: arrow.MapOf(arrow.PrimitiveTypes.Int32, arrow.ListOf(id)), Nullable: true},
		{
			Name: "id_score_list_features", Type: arrow.MapOf(arrow.PrimitiveTypes.Int32, arrow.MapOf(id, float)),
			Nullable: true,
		},
		{Name: "names", Type: arrow.MapOf(arrow.BinaryTypes.String, id), Nullable: true},
	}, nil)
	b := arrowarray.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	floats, lists, scored := b.Field(1).(*arrowarray.MapBuilder), b.Field(2).(*arrowarray.MapBuilder),
		b.Field(3).(*arrowarray.MapBuilder)
	ids := lists.ItemBuilder().(*arrowarray.ListBuilder)
	scores := scored.ItemBuilder().(*arrowarray.MapBuilder)
	for r := range rows {
		b.Field(0).(*arrowarray.Float32Builder).Append(float32(r))
		b.Field(4).AppendNull()
		floats.Append(true)
		add := func(key int32, v float32) {
			floats.KeyBuilder().(*arrowarray.Int32Builder).Append(key)
			floats.ItemBuilder().(*arrowarray.Float32Builder).Append(v)
		}
		if r%2 == 0 {
			add(2, float32(-r))
		}
		add(1, float32(r))
		lists.Append(true)
		lists.KeyBuilder().(*arrowarray.Int32Builder).Append(101)
		ids.Append(true)
		ids.ValueBuilder().(*arrowarray.Int64Builder).AppendValues([]int64{int64(r), int64(r + 1), int64(r + 2)}, nil)
		if r%3 == 0 {
			lists.KeyBuilder().(*arrowarray.Int32Builder).Append(103)
			ids.Append(true)
		}
		if r == 2 {
			scored.AppendNull()
			continue
		}
		scored.Append(true)
		scored.KeyBuilder().(*arrowarray.Int32Builder).Append(7)
		scores.Append(true)
		scores.KeyBuilder().(*arrowarray.Int64Builder).Append(int64(r))
		scores.ItemBuilder().(*arrowarray.Float32Builder).Append(float32(r) / 4)
	}
	record := b.NewRecordBatch()
	defer record.Release()
	f, err := os.Create(path)
	require.NoError(t, err)
	w, err := pqarrow.NewFileWriter(schema, f,
		arrowpq.NewWriterProperties(arrowpq.WithCompression(compress.Codecs.Snappy), arrowpq.WithMaxRowGroupLength(8)),
		pqarrow.NewArrowWriterProperties())
	require.NoError(t, err)
	require.NoError(t, w.Write(record))
	require.NoError(t, w.Close())
}

// TestMapsOnEveryEngine: another writer's file with maps, looked at and preprocessed; every engine gives the same
// files, and they hold what the rows say.
func TestMapsOnEveryEngine(t *testing.T) {
	const rows = 20
	data := filepath.Join(t.TempDir(), "maps.parquet")
	mapFile(t, data, rows)
	info := decode[[]partitionfile.Description](t, must(t, "dataset", "inspect", data, "--output", "json"))
	types := map[string]string{}
	for _, c := range info[0].Columns {
		types[c.Name] = c.Type
		assert.Empty(t, c.Refused, c.Name)
		assert.Positive(t, c.Compressed)
		assert.Equal(t, "SNAPPY", c.Codec)
	}
	assert.Equal(t, "map of INT32 INT(32) to FLOAT", types["float_features"])
	assert.Equal(t, "map of INT32 INT(32) to list of INT64 INT(64)", types["id_list_features"])
	assert.Equal(t, "map of INT32 INT(32) to list of INT64 INT(64) scored by FLOAT", types["id_score_list_features"])

	pipeline := file(t, "pipeline.yaml", mapPipeline)
	for _, format := range []string{"npy", "arrow"} {
		var want map[string]string
		for name, flags := range map[string][]string{
			"reference": {"--engine", "reference"}, "cpu": {"--engine", "cpu", "--threads", "2"},
			"drive, vendor":   {"--engine", "drive"},
			"drive, standard": {"--engine", "drive", "--commands", "standard", "--slm", "1MiB"},
			"little memory":   {"--engine", "cpu", "--slm", "96KiB"},
		} {
			out := filepath.Join(t.TempDir(), "out")
			must(t, append([]string{"preprocess", "--pipeline", pipeline, "--in", data, "--format", format, "--out",
				out}, flags...)...)
			got := content(t, out)
			if want == nil {
				want = got
			}
			require.Len(t, got, len(want), name)
			for f := range want {
				require.True(t, want[f] == got[f], "%s %s: %s differs", format, name, f)
			}
		}
		if format == "arrow" {
			continue
		}
		floats := func(name string) []float32 { return npyOf[float32](t, want[name]) }
		lengths, values, weights := npyOf[int32](t, want["lengths.npy"]), npyOf[int64](t, want["values.npy"]),
			floats("weights.npy")
		require.Len(t, weights, len(values))
		at := 0
		for r := range rows {
			require.Equal(t, []float32{float32(r), float32(-r) * float32((r+1)%2)}, floats("dense.npy")[2*r:2*r+2])
			require.EqualValues(t, 2, lengths[r])
			require.Equal(t, []int64{int64(r), int64(r + 1)}, values[at:at+2])
			require.Equal(t, []float32{1, 1}, weights[at:at+2])
			at += 2
		}
		for r, l := range lengths[2*rows:] {
			require.Zero(t, lengths[rows+r], "lists of 103 are empty")
			if r == 2 {
				require.Zero(t, l)
				continue
			}
			require.EqualValues(t, 1, l)
			require.EqualValues(t, r, values[at])
			require.Equal(t, float32(r)/4, weights[at])
			at++
		}
		require.Len(t, values, at)
	}

	// A job over it: T, P, mini-batches with weights, rows mixed.
	for _, engine := range []string{"drive", "cpu"} {
		must(t, "train", "--pipeline", pipeline, "--in", data, "--engine", engine, "--batch", "7", "--shuffle", "rows",
			"--trainer-rows-per-second", "1e6", "--measure", "10ms")
	}

	code, _, errs := millrace(t, "preprocess", "--pipeline", file(t, "names.yaml", `sparse: [{columns: ["names[*]"]}]`),
		"--in", data, "--out", filepath.Join(t.TempDir(), "no"))
	assert.Equal(t, 1, code)
	assert.Contains(t, errs, "which features a map holds only its rows tell: name them, as [color]")
}

// npyOf is the elements of a file of NumPy's format.
func npyOf[T int32 | int64 | float32](t *testing.T, file string) []T {
	t.Helper()
	require.Greater(t, len(file), 10)
	require.Equal(t, "\x93NUMPY\x01\x00", file[:8])
	data := file[10+int(binary.LittleEndian.Uint16([]byte(file[8:]))):]
	var zero T
	out := make([]T, len(data)/binary.Size(zero))
	_, err := binary.Decode([]byte(data), binary.LittleEndian, out)
	require.NoError(t, err)
	return out
}
