package decoder

import (
	"bytes"
	"fmt"
	"math/rand"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	arrowpq "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// arrowSchema has a column of every kind that the decoder reads.
var arrowSchema = arrow.NewSchema([]arrow.Field{
	{Name: "bool", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	{Name: "int8", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
	{Name: "uint16", Type: arrow.PrimitiveTypes.Uint16},
	{Name: "int32", Type: arrow.PrimitiveTypes.Int32},
	{Name: "uint32", Type: arrow.PrimitiveTypes.Uint32, Nullable: true},
	{Name: "int64", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "uint64", Type: arrow.PrimitiveTypes.Uint64},
	{Name: "float", Type: arrow.PrimitiveTypes.Float32},
	{Name: "double", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "string", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "fixed", Type: &arrow.FixedSizeBinaryType{ByteWidth: 3}},
	{Name: "ids", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
	{Name: "words", Type: arrow.ListOfNonNullable(arrow.BinaryTypes.String)},
	{Name: "weights", Type: arrow.ListOf(arrow.PrimitiveTypes.Float32)},
	{Name: "group", Type: arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true}),
		Nullable: true},
}, nil)

// fillArrow appends n random rows to a builder and to want.
func fillArrow(r *rand.Rand, b array.Builder, nullable bool, few bool) any {
	if nullable && r.Intn(5) == 0 {
		b.AppendNull()
		return nil
	}
	x := r.Uint64()
	if few {
		x = uint64(r.Intn(7)) * 0x9e3779b97f4a7c15
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(x&1 == 1)
		return int64(x & 1)
	case *array.Int8Builder:
		b.Append(int8(x))
		return int64(int8(x))
	case *array.Uint16Builder:
		b.Append(uint16(x))
		return int64(uint16(x))
	case *array.Int32Builder:
		b.Append(int32(x))
		return int64(int32(x))
	case *array.Uint32Builder:
		b.Append(uint32(x))
		return int64(uint32(x))
	case *array.Int64Builder:
		b.Append(int64(x))
		return int64(x)
	case *array.Uint64Builder:
		b.Append(x)
		return int64(x)
	case *array.Float32Builder:
		b.Append(float32(x))
		return float32(x)
	case *array.Float64Builder:
		b.Append(float64(x))
		return float64(x)
	case *array.StringBuilder:
		s := fmt.Sprint(x % 100000)
		b.Append(s)
		return []byte(s)
	case *array.FixedSizeBinaryBuilder:
		v := []byte{byte(x), byte(x >> 8), byte(x >> 16)}
		b.Append(v)
		return v
	case *array.ListBuilder:
		b.Append(true)
		list := []any{}
		for range r.Intn(7) {
			list = append(list, fillArrow(r, b.ValueBuilder(), b.Type().(*arrow.ListType).ElemField().Nullable, few))
		}
		return list
	case *array.StructBuilder:
		b.Append(true)
		return fillArrow(r, b.FieldBuilder(0), true, few)
	}
	panic(fmt.Sprintf("no values for %T", b))
}

// TestReadsArrowFiles reads files of arrow-go over codecs, page versions, encodings and page sizes. With v1 pages its
// lists go on over pages.
func TestReadsArrowFiles(t *testing.T) {
	codecs := []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Gzip,
		compress.Codecs.Zstd, compress.Codecs.Lz4Raw}
	continued := 0
	for i, codec := range codecs {
		for _, version := range []arrowpq.DataPageVersion{arrowpq.DataPageV1, arrowpq.DataPageV2} {
			for _, dict := range []bool{false, true} {
				name := fmt.Sprintf("%v/%v/dictionary_%t", codec, version, dict)
				t.Run(name, func(t *testing.T) {
					r := rand.New(rand.NewSource(int64(i)))
					file, want := writeArrow(t, r, 700+r.Intn(100), arrowpq.WithCompression(codec),
						arrowpq.WithDataPageVersion(version),
						arrowpq.WithDictionaryDefault(dict), arrowpq.WithDataPageSize(int64(50+r.Intn(800))),
						arrowpq.WithBatchSize(int64(3+r.Intn(60))),
						arrowpq.WithMaxRowGroupLength(500))
					f, err := format.ReadFooter(bytes.NewReader(file), int64(len(file)))
					require.NoError(t, err)
					require.Len(t, f.RowGroups, 2)
					rows, errs := readAll(t, bytes.NewReader(file), f)
					require.Empty(t, errs)
					for l := range f.Leaves {
						leaf := &f.Leaves[l]
						requireSameRows(t, want[l], rows[leaf.Path], leaf.Path)
						continued += countContinued(t, file, f, l)
					}
					ids, ok := f.Leaf("ids")
					require.True(t, ok)
					require.True(t, ids.List)
				})
			}
		}
	}
	require.Positive(t, continued, "no list went on over a page: the test does not test that")
}

func writeArrow(t *testing.T, r *rand.Rand, n int, props ...arrowpq.WriterProperty) ([]byte, [][]any) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrowSchema)
	defer b.Release()
	want := make([][]any, arrowSchema.NumFields())
	for range n {
		for i, field := range b.Fields() {
			want[i] = append(want[i], fillArrow(r, field, arrowSchema.Field(i).Nullable, i%2 == 0))
		}
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(arrowSchema, &out, arrowpq.NewWriterProperties(props...),
		pqarrow.NewArrowWriterProperties())
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return out.Bytes(), want
}

// countContinued counts the pages of a column that begin inside a row.
func countContinued(t *testing.T, file []byte, f *format.File, leaf int) int {
	n := 0
	for g := range f.RowGroups {
		ch := &f.RowGroups[g].Columns[leaf]
		ct := f.Leaves[leaf].ColumnType(ch.Codec)
		b := file[ch.Offset : ch.Offset+ch.Compressed]
		for len(b) > 0 {
			h, size, err := format.ParsePageHeader(b)
			require.NoError(t, err)
			payload := b[size : size+int(h.Compressed)]
			b = b[size+int(h.Compressed):]
			if h.Type != format.DataPage || !ct.List {
				continue
			}
			page, err := Unpack(make([]byte, h.Uncompressed), &h, payload, &ct)
			require.NoError(t, err)
			h.Encoding = format.Plain // levels are all that matters here
			var d Decoder
			require.NoError(t, d.Reset(&ct, &h, page, nil))
			if d.Continues() {
				n++
			}
		}
	}
	return n
}

// parquetGoRow has columns as parquet-go writes them.
type parquetGoRow struct {
	Label   int32    `parquet:"label,plain"`
	Int     *int32   `parquet:"int,optional,dict,snappy"`
	ID      int64    `parquet:"id,dict,zstd"`
	Score   float32  `parquet:"score,plain,gzip"`
	Ratio   *float64 `parquet:"ratio,optional,plain,lz4"`
	Click   bool     `parquet:"click"`
	Word    string   `parquet:"word,dict"`
	UUID    [16]byte `parquet:"uuid,uuid"`
	Cats    []int64  `parquet:"cats,list,dict"`
	Tags    []string `parquet:"tags,list,plain,snappy"`
	Repeats []uint32 `parquet:"repeats"`
}

func TestReadsParquetGoFiles(t *testing.T) {
	for _, version := range []int{1, 2} {
		for _, pageSize := range []int{64, 1000, 1 << 20} {
			t.Run(fmt.Sprintf("v%d/pages of %d", version, pageSize), func(t *testing.T) {
				r := rand.New(rand.NewSource(int64(pageSize)))
				var out bytes.Buffer
				w := pq.NewGenericWriter[parquetGoRow](&out, pq.DataPageVersion(version), pq.PageBufferSize(pageSize),
					pq.MaxRowsPerRowGroup(400))
				want := map[string][]any{}
				for range 900 {
					_, err := w.Write([]parquetGoRow{randomParquetGoRow(r, want)})
					require.NoError(t, err)
				}
				require.NoError(t, w.Close())
				file := bytes.NewReader(out.Bytes())
				f, err := format.ReadFooter(file, int64(out.Len()))
				require.NoError(t, err)
				require.Equal(t, int64(900), f.Rows)
				rows, errs := readAll(t, file, f)
				require.Empty(t, errs)
				for name, rowsWanted := range want {
					leaf, ok := f.Leaf(name)
					require.True(t, ok, name)
					requireSameRows(t, rowsWanted, rows[leaf.Path], name)
				}
				for l := range f.Leaves {
					locations, err := format.ReadOffsetIndex(file, f, 0, l)
					require.NoError(t, err)
					require.NotEmpty(t, locations)
				}
			})
		}
	}
}

func randomParquetGoRow(r *rand.Rand, want map[string][]any) parquetGoRow {
	row := parquetGoRow{Label: int32(r.Intn(2)), ID: int64(r.Intn(50)) << 40, Score: r.Float32(), Click: r.Intn(2) == 0,
		Word: fmt.Sprint("w", r.Intn(30))}
	_, _ = r.Read(row.UUID[:])
	click := int64(0)
	if row.Click {
		click = 1
	}
	add := func(name string, v any) { want[name] = append(want[name], v) }
	add("label", int64(row.Label))
	add("id", row.ID)
	add("score", row.Score)
	add("click", click)
	add("word", []byte(row.Word))
	add("uuid", append([]byte{}, row.UUID[:]...))
	if r.Intn(4) == 0 {
		add("int", nil)
		add("ratio", nil)
	} else {
		i, f := int32(r.Uint32()), r.NormFloat64()
		row.Int, row.Ratio = &i, &f
		add("int", int64(i))
		add("ratio", f)
	}
	cats, tags, repeats := []any{}, []any{}, []any{}
	for range r.Intn(6) {
		row.Cats = append(row.Cats, int64(r.Intn(1000)))
		cats = append(cats, row.Cats[len(row.Cats)-1])
		row.Tags = append(row.Tags, fmt.Sprint(r.Intn(1<<20)))
		tags = append(tags, []byte(row.Tags[len(row.Tags)-1]))
		row.Repeats = append(row.Repeats, r.Uint32())
		repeats = append(repeats, int64(row.Repeats[len(row.Repeats)-1]))
	}
	add("cats", cats)
	add("tags", tags)
	add("repeats", repeats)
	return row
}
