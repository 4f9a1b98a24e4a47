package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	arrowpq "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"
)

// typesSchema has the types that files of recommenders have beside numbers and lists of numbers.
func typesSchema() *arrow.Schema {
	text, key, id := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64
	money, time := &arrow.Decimal128Type{Precision: 9, Scale: 2}, arrow.FixedWidthTypes.Timestamp_us
	half := arrow.FixedWidthTypes.Float16
	var fields []arrow.Field
	for _, f := range []arrow.Field{
		{Name: "word", Type: text},
		{Name: "words", Type: arrow.ListOf(text)},
		{Name: "tags", Type: arrow.MapOf(text, text)},
		{Name: "texts", Type: arrow.MapOf(key, text)},
		{Name: "phrases", Type: arrow.MapOf(text, arrow.ListOf(text))},
		{Name: "queries", Type: arrow.MapOf(key, arrow.MapOf(text, arrow.PrimitiveTypes.Float32))},
		{Name: "counts", Type: arrow.MapOf(text, id)},
		{Name: "visits", Type: arrow.ListOf(arrow.StructOf(arrow.Field{Name: "page", Type: id, Nullable: true},
			arrow.Field{Name: "name", Type: text, Nullable: true}))},
		{Name: "time", Type: time},
		{Name: "times", Type: arrow.MapOf(text, time)},
		{Name: "day", Type: arrow.FixedWidthTypes.Date32},
		{Name: "price", Type: money},
		{Name: "prices", Type: arrow.MapOf(text, money)},
		{Name: "deep", Type: arrow.ListOf(arrow.ListOf(id))},
		{Name: "carts", Type: arrow.ListOf(arrow.MapOf(text, id))},
		{Name: "embedding", Type: arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32)},
		{Name: "wide", Type: arrow.ListOf(arrow.PrimitiveTypes.Float64)},
		{Name: "half", Type: half},
		{Name: "halves", Type: arrow.MapOf(key, half)},
		{Name: "narrow", Type: arrow.ListOf(half)},
		{Name: "session", Type: extensions.NewUUIDType()},
	} {
		f.Nullable = true
		fields = append(fields, f)
	}
	return arrow.NewSchema(fields, nil)
}

// typesRows are the rows: values in all columns, nulls, empty lists and lists that hold nulls, and values again.
const typesRows = `[
{"word": "ff", "words": ["1", "2"], "tags": [{"key": "color", "value": "a"}, {"key": "word", "value": "ff"}],
 "texts": [{"key": 7, "value": "10"}], "phrases": [{"key": "p", "value": ["a", "b"]}, {"key": "q", "value": []}],
 "queries": [{"key": 3, "value": [{"key": "c", "value": 0.5}, {"key": "d", "value": 1.5}]}],
 "counts": [{"key": "n", "value": 9}], "visits": [{"page": 1, "name": "11"}, {"page": 2, "name": "12"}],
 "time": "1970-01-02T00:00:01Z", "times": [{"key": "first", "value": "1970-01-03T00:00:00Z"}], "day": "1970-01-05",
 "price": "1.50", "prices": [{"key": "eur", "value": "-2.25"}], "deep": [[1, 2], [], null, [3]],
 "carts": [[{"key": "1f", "value": 5}], [{"key": "2f", "value": 6}]], "embedding": [1, 2, 3], "wide": [0.5, 1.5],
 "half": 0.5, "halves": [{"key": 1, "value": -1.5}], "narrow": [0.25, 0.75],
 "session": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"},
{},
{"words": [], "tags": [{"key": "color", "value": null}], "texts": [], "phrases": [{"key": "p", "value": ["a", null]}],
 "queries": [{"key": 3, "value": [{"key": "c", "value": null}]}], "counts": [{"key": "n", "value": null}],
 "visits": [{"page": 3, "name": null}], "times": [{"key": "first", "value": null}], "prices": [], "deep": [[], null],
 "carts": [null, []], "halves": [{"key": 2, "value": 9}], "wide": []},
{"word": "", "words": ["3", null], "tags": [{"key": "color", "value": "b"}, {"key": "color", "value": "c"}],
 "phrases": [{"key": "p", "value": []}], "queries": [{"key": 4, "value": []}], "deep": [[4]], "day": "1969-12-31",
 "price": "-0.01", "time": "1969-12-31T23:59:59Z", "wide": [2.5]}
]`

const typesPipeline = `
batch: 3
dense:
  - {columns: [price, "prices[eur]"], ops: [decimal: float32, fill_null: 0]}
  - {columns: [time], ops: [to_seconds, fill_null: 0]}
  - {columns: ["times[first]", day], ops: [to_days, fill_null: 0]}
  - {columns: [half, "halves[1]"], ops: [fill_null: 0]}
  - {columns: [embedding], ops: [fixed_length: {length: 3, pad: 0}]}
  - {columns: [wide, narrow], ops: [fixed_length: {length: 2, pad: 7}]}
values:
  - {as: phrase, from: "phrases[p]", ops: [hex_to_int]}
  - {as: tag, from: "tags[color]", ops: [hex_to_int]}
sparse:
  - {columns: [word, words, "tags[color]", "texts[7]", "phrases[p]", "queries[3]", visits.name], ops: [hex_to_int]}
  - {columns: ["counts[n]", visits.page, deep, carts.key_value.value]}
  - {columns: [carts.key_value.key], ops: [hex_to_int]}
  - {inputs: [phrase, tag], as: both, ops: [id_list_transform]}
  - {columns: [word], as: hashed, ops: [hash_bytes: xxh3]}
  - {columns: ["tags[word]"], as: tagged, ops: [hash_bytes: xxh3]}
  - {columns: [session], ops: [hash_bytes: xxh3]}
`

// The mini-batches that the pipeline makes of the rows, all of them together.
var (
	typesDense = [][]float32{
		{1.5, -2.25, 86401, 2, 4, 0.5, -1.5, 1, 2, 3, 0.5, 1.5, 0.25, 0.75},
		{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7, 7},
		{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7, 7},
		{-0.01, 0, -1, 0, -1, 0, 0, 0, 0, 0, 2.5, 7, 7, 7},
	}
	// the ids of each key, row by row
	typesKeys = map[string]string{
		"word": "[255] [] [] []", "words": "[1 2] [] [] []", "tags[color]": "[10] [] [] [12]", "texts[7]": "[16] [] [] []",
		"phrases[p]": "[10 11] [] [] []", "queries[3]": "[12 13] [] [] []", "visits.name": "[17 18] [] [] []",
		"counts[n]": "[9] [] [] []", "visits.page": "[1 2] [] [3] []", "deep": "[1 2 3] [] [] [4]",
		"carts.key_value.value": "[5 6] [] [] []", "carts.key_value.key": "[31 47] [] [] []", "both": "[10] [] [] []",
	}
)

// writeTypes writes the rows. old stores times as INT96, and decimals as integers.
func writeTypes(t *testing.T, old bool) string {
	path, schema := filepath.Join(t.TempDir(), "types.parquet"), typesSchema()
	record, _, err := arrowarray.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(typesRows))
	require.NoError(t, err)
	defer record.Release()
	f, err := os.Create(path)
	require.NoError(t, err)
	options := []arrowpq.WriterProperty{arrowpq.WithMaxRowGroupLength(3), arrowpq.WithStoreDecimalAsInteger(old)}
	w, err := pqarrow.NewFileWriter(schema, f, arrowpq.NewWriterProperties(options...),
		pqarrow.NewArrowWriterProperties(pqarrow.WithDeprecatedInt96Timestamps(old)))
	require.NoError(t, err)
	require.NoError(t, w.Write(record))
	require.NoError(t, w.Close())
	return path
}

// TestTypesOnEveryEngine checks that every engine makes the mini-batches that are written down of every type.
func TestTypesOnEveryEngine(t *testing.T) {
	pipeline := file(t, "pipeline.yaml", typesPipeline)
	var want map[string]string
	for _, old := range []bool{false, true} {
		data := writeTypes(t, old)
		require.Contains(t, must(t, "dataset", "inspect", data),
			"map of INT32 INT(32) to list of BYTE_ARRAY STRING scored by FLOAT")
		for name, flags := range map[string][]string{
			"reference": {"--engine", "reference"}, "cpu": {"--engine", "cpu", "--threads", "2"},
			"drive, vendor":   {"--engine", "drive"},
			"drive, standard": {"--engine", "drive", "--commands", "standard", "--slm", "1MiB"},
		} {
			out := filepath.Join(t.TempDir(), "out")
			must(t, append([]string{"preprocess", "--pipeline", pipeline, "--in", data, "--out", out}, flags...)...)
			got := content(t, out)
			if want == nil {
				want = got
			}
			for f := range want {
				require.True(t, want[f] == got[f], "%s: %s differs", name, f)
			}
		}
	}
	dense := npyOf[float32](t, want["dense.npy"])
	for r, row := range typesDense {
		require.Equal(t, row, dense[r*len(row):][:len(row)], "row %d", r)
	}
	keys := decode[struct{ Keys []string }](t, want["keys.json"]).Keys
	lengths, values, weights := npyOf[int32](t, want["lengths.npy"]), npyOf[int64](t, want["values.npy"]),
		npyOf[float32](t, want["weights.npy"])
	require.Len(t, weights, len(values))
	got, at := map[string]string{}, 0
	for k, key := range keys {
		var rows []string
		for r := range typesDense {
			n := int(lengths[k*len(typesDense)+r])
			rows = append(rows, fmt.Sprint(values[at:at+n]))
			if key == "queries[3]" && r == 0 {
				require.Equal(t, []float32{0.5, 1.5}, weights[at:at+n])
			}
			at += n
		}
		got[key] = strings.Join(rows, " ")
	}
	for key, rows := range typesKeys {
		require.Equal(t, rows, got[key], key)
	}
	word, _, _ := strings.Cut(got["hashed"], " ")
	require.Equal(t, word+" [] [] []", got["tagged"], "the same text has the same hash")
	require.Regexp(t, `^\[-?[0-9]+\] \[\] \[\] \[\]$`, got["session"])
	require.Len(t, keys, len(typesKeys)+3)
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
