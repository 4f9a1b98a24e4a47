package workload

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// PreSto, table I.
func TestModelsPaper(t *testing.T) {
	var rows []string
	for _, m := range Models() {
		rows = append(rows, fmt.Sprint(m.Name, " ", m.Dense, " ", m.Sparse, " ", m.MeanLength, " ", m.Generated, " ",
			m.Borders, " ", m.Tables, " ", m.Embeddings))
		assert.Equal(t, m.Tables, m.Sparse+m.Generated)
		assert.LessOrEqual(t, m.Generated, m.Dense)
		assert.Len(t, m.Columns(), 1+m.Dense+m.Sparse)
	}
	assert.Equal(t, []string{
		"rm1 13 26 1 13 1024 39 500000",
		"rm2 504 42 20 21 1024 63 500000",
		"rm3 504 42 20 42 1024 84 500000",
		"rm4 504 42 20 42 2048 84 500000",
		"rm5 504 42 20 42 4096 84 500000",
	}, rows)
	m, err := Find("RM3")
	require.NoError(t, err)
	assert.Equal(t, Models()[2], m)
	_, err = Find("rm6")
	require.ErrorIs(t, err, ErrOptions)
}

func model(t testing.TB, name string) Model {
	t.Helper()
	m, err := Find(name)
	require.NoError(t, err)
	return m
}

// small is a model with lists but few columns, for tests that read much.
func small(lists bool) Model {
	m := Model{Name: "small", Dense: 3, Sparse: 2, Lists: lists, Coverage: 0.29}
	if !lists {
		m.Coverage = 0
	}
	return m
}

// read returns the rows of files as arrow-go reads them, one string a column and row.
func read(t testing.TB, files []File) [][]string {
	t.Helper()
	var out [][]string
	for _, f := range files {
		r, err := file.OpenParquetFile(f.Path, false)
		require.NoError(t, err)
		ar, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
		require.NoError(t, err)
		table, err := ar.ReadTable(context.Background())
		require.NoError(t, err)
		if out == nil {
			out = make([][]string, table.NumCols())
		}
		require.Equal(t, f.Rows, table.NumRows())
		for c := range out {
			for _, chunk := range table.Column(c).Data().Chunks() {
				out[c] = appendCells(out[c], chunk)
			}
		}
		table.Release()
		require.NoError(t, r.Close())
	}
	return out
}

func appendCells(dst []string, a arrow.Array) []string {
	for i := range a.Len() {
		if a.IsNull(i) {
			dst = append(dst, "null")
			continue
		}
		switch a := a.(type) {
		case *array.Int32:
			dst = append(dst, fmt.Sprint(a.Value(i)))
		case *array.Float32:
			dst = append(dst, fmt.Sprintf("%08x", math.Float32bits(a.Value(i))))
		case *array.Int64:
			dst = append(dst, fmt.Sprint(a.Value(i)))
		case *array.List:
			lo, hi := a.ValueOffsets(i)
			v := a.ListValues().(*array.Int64)
			dst = append(dst, fmt.Sprint(v.Int64Values()[lo:hi]))
		default:
			dst = append(dst, fmt.Sprintf("unknown %T", a))
		}
	}
	return dst
}

// want returns the rows as the column functions make them, in one go and without a file; of some columns only, if any
// are named.
func want(m Model, seed uint64, rows int, only ...int) [][]string {
	cols := columns(m, seed)
	out := make([][]string, len(cols))
	for c := range cols {
		if len(only) > 0 && !slices.Contains(only, c) {
			continue
		}
		for block := 0; block*blockRows < rows; block++ {
			var list []int64
			inList := false
			end := func() {
				if inList {
					out[c] = append(out[c], fmt.Sprint(list))
				}
				inList, list = false, nil
			}
			for _, v := range cols[c].appendRows(nil, uint64(block), 0, min(blockRows, rows-block*blockRows)) {
				if v.RepetitionLevel() == 0 {
					end()
				}
				switch {
				case cols[c].kind == listColumn && v.DefinitionLevel() == levelEmpty:
					inList = true
				case cols[c].kind == listColumn && v.DefinitionLevel() == levelID:
					inList = true
					list = append(list, v.Int64())
				case v.IsNull():
					out[c] = append(out[c], "null")
				case cols[c].kind == floatColumn:
					out[c] = append(out[c], fmt.Sprintf("%08x", math.Float32bits(v.Float())))
				case cols[c].kind == idColumn:
					out[c] = append(out[c], fmt.Sprint(v.Int64()))
				default:
					out[c] = append(out[c], fmt.Sprint(v.Int32()))
				}
			}
			end()
		}
	}
	return out
}

// arrow-go, which shares no code with the writer, reads the intended values, in every layout.
func TestFilesHoldTheRows(t *testing.T) {
	const rows = 3000
	for _, lists := range []bool{false, true} {
		m := small(lists)
		expect := want(m, 9, rows)
		for _, codec := range []string{"none", "snappy", "gzip", "zstd", "lz4_raw"} {
			for _, encoding := range []string{"plain", "dictionary"} {
				for _, o := range []Options{
					{},
					{PageVersion: 2, PageBytes: 4096},
					{Partitions: 3, RowGroupRows: 401},
					{Partitions: 2, RowGroupRows: 1024, PageBytes: 64},
				} {
					o.Model, o.Rows, o.Seed, o.Out, o.Codec, o.Encoding = m, rows, 9, t.TempDir(), codec, encoding
					files, err := Generate(t.Context(), o)
					require.NoError(t, err)
					require.Equal(t, expect, read(t, files), "%+v", o)
				}
			}
		}
	}
}

func TestSchemas(t *testing.T) {
	for _, name := range []string{"rm1", "rm5"} {
		m := model(t, name)
		files, err := Generate(t.Context(), Options{Model: m, Rows: 1, Out: t.TempDir()})
		require.NoError(t, err)
		r, err := file.OpenParquetFile(files[0].Path, false)
		require.NoError(t, err)
		defer r.Close()
		s := r.MetaData().Schema
		require.Equal(t, 1+m.Dense+m.Sparse, s.NumColumns())
		leaf := func(i int) string {
			c := s.Column(i)
			return fmt.Sprintf("%s %s def %d rep %d", c.Path(), c.PhysicalType(), c.MaxDefinitionLevel(),
				c.MaxRepetitionLevel())
		}
		assert.Equal(t, "label INT32 def 0 rep 0", leaf(0))
		if m.Lists {
			assert.Equal(t, "int_503 FLOAT def 1 rep 0", leaf(504))
			assert.Equal(t, "cat_0.list.element INT64 def 3 rep 1", leaf(505))
			assert.Equal(t, "cat_41.list.element INT64 def 3 rep 1", leaf(546))
		} else {
			assert.Equal(t, "int_2 INT32 def 1 rep 0", leaf(3), "numeric order")
			assert.Equal(t, "int_12 INT32 def 1 rep 0", leaf(13))
			assert.Equal(t, "cat_25 INT64 def 1 rep 0", leaf(39))
		}
		assert.Equal(t, "millrace-workload version 1.0.0(build none)", r.MetaData().GetCreatedBy())
	}
}

func digest(t *testing.T, files []File) string {
	t.Helper()
	h := sha256.New()
	for _, f := range files {
		b, err := os.ReadFile(f.Path)
		require.NoError(t, err)
		require.EqualValues(t, len(b), f.Bytes)
		h.Write(b)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func TestSameOptionsGiveSameBytes(t *testing.T) {
	for _, m := range []Model{model(t, "rm1"), small(true)} {
		for _, encoding := range []string{"plain", "dictionary"} {
			var digests []string
			for _, procs := range []int{1, 2, 7} {
				was := runtime.GOMAXPROCS(procs)
				files, err := Generate(t.Context(), Options{Model: m, Rows: 2500, Out: t.TempDir(), Partitions: 5,
					RowGroupRows: 300, Codec: "zstd", Encoding: encoding, Seed: 4})
				runtime.GOMAXPROCS(was)
				require.NoError(t, err)
				digests = append(digests, digest(t, files))
			}
			assert.Equal(t, digests[0], digests[1])
			assert.Equal(t, digests[0], digests[2])
		}
	}
}

// The rows never change: measurements are compared over years. If this fails the rows changed, and generatorVersion
// must change too.
func TestRowsGolden(t *testing.T) {
	for name, golden := range map[string]string{
		"rm1": "6d0f7adf19e16e766a32c227ccdf58c6",
		"rm2": "4b62c554a479437d0ac1a0d271d1e1a9",
		"rm5": "36be4c96a980ff9338653e51a7116a97",
	} {
		h := sha256.New()
		for _, c := range want(model(t, name), 0, 1100) {
			for _, cell := range c {
				_ = binary.Write(h, binary.LittleEndian, uint32(len(cell)))
				h.Write([]byte(cell))
			}
		}
		assert.Equal(t, golden, fmt.Sprintf("%x", h.Sum(nil)[:16]), name)
	}
}

func TestSeedAndModelChangeTheRows(t *testing.T) {
	a := want(model(t, "rm2"), 0, 100)
	assert.NotEqual(t, a, want(model(t, "rm2"), 1, 100))
	assert.NotEqual(t, a, want(model(t, "rm3"), 0, 100))
	assert.NotEqual(t, a[1], a[2], "columns differ")
}

// The statistics that doc.go promises, over the file's cells.
func TestStatistics(t *testing.T) {
	const rows = 20_000
	t.Run("rm1", func(t *testing.T) {
		m := model(t, "rm1")
		cells := want(m, 1, rows)
		for c, column := range cells {
			nulls, negative := 0.0, 0.0
			for _, v := range column {
				if v == "null" {
					nulls++
				}
				if strings.HasPrefix(v, "-") {
					negative++
					assert.Equal(t, "-1", v)
				}
			}
			require.Len(t, column, rows)
			assert.InDelta(t, m.nullRate(c), nulls/rows, 0.015, "column %d", c)
			if c >= 1 && c <= 13 {
				assert.InDelta(t, (1-nulls/rows)/64, negative/rows, 0.005)
			} else {
				assert.Zero(t, negative)
			}
		}
		assert.InDelta(t, 1393.0/3000, m.nullRate(4), 1e-9, "int_3, as Criteo's")
		assert.InDelta(t, 1396.0/3000, m.nullRate(14+13), 1e-9, "cat_13, as Criteo's")
		ones := 0.0
		for _, v := range cells[0] {
			if v == "1" {
				ones++
			}
		}
		assert.InDelta(t, 1.0/32, ones/rows, 0.004)
	})
	t.Run("rm5", func(t *testing.T) {
		m := model(t, "rm5")
		m.Dense, m.Sparse = 4, 4
		cells := want(m, 1, rows)
		for c := 1; c < 5; c++ {
			nulls, large := 0.0, 0.0
			for _, v := range cells[c] {
				var bits uint32
				if v == "null" {
					nulls++
				} else if _, err := fmt.Sscanf(v, "%x", &bits); err == nil &&
					math.Abs(float64(math.Float32frombits(bits))) > 100 {
					large++
				}
			}
			assert.InDelta(t, 0.71, nulls/rows, 0.01)
			assert.InDelta(t, 0.5, large/(rows-nulls), 0.02)
		}
		for c := 5; c < 9; c++ {
			nulls, ids, empty, longest := 0.0, 0.0, 0.0, 0
			for _, v := range cells[c] {
				switch v {
				case "null":
					nulls++
				case "[]":
					empty++
				default:
					n := strings.Count(v, " ") + 1
					ids += float64(n)
					longest = max(longest, n)
				}
			}
			assert.InDelta(t, 0.71, nulls/rows, 0.01)
			assert.InDelta(t, 20, ids/(rows-nulls), 0.02, "the mean of lists that are there")
			assert.InDelta(t, 1.0/41, empty/(rows-nulls), 0.005)
			assert.Equal(t, maxLength, longest)
		}
	})
}

// Even a few rows have the mean length, within 0.2.
func TestMeanLengthOfFewRows(t *testing.T) {
	m := model(t, "rm2")
	m.Dense = 0
	lists, ids := 0, 0
	for _, c := range want(m, 3, 200) {
		for _, v := range c {
			if strings.HasPrefix(v, "[") {
				lists++
				ids += len(strings.Fields(strings.Trim(v, "[]")))
			}
		}
	}
	assert.InDelta(t, 20, float64(ids)/float64(lists), 0.2)
}

func TestIDsAreSkewedAndScattered(t *testing.T) {
	m := model(t, "rm1")
	cells := want(m, 1, 100_000, 15, 16)
	top := func(c int) (string, int) {
		count := map[string]int{}
		best := ""
		for _, v := range cells[c] {
			if v == "null" {
				continue
			}
			count[v]++
			if count[v] > count[best] {
				best = v
			}
		}
		return best, count[best]
	}
	a, na := top(15)
	b, _ := top(16)
	assert.NotEqual(t, a, b, "columns scatter ids in different ways")
	assert.Equal(t, fmt.Sprint(scatter(0, columns(m, 1)[15].streamKey)), a, "the most frequent id is rank 1")
	assert.InDelta(t, 1/zipfMass(1, IDs), float64(na)/100_000, 0.003)
}

func TestCoverageOption(t *testing.T) {
	o := Options{Model: small(true), Rows: 2000, Out: t.TempDir(), Coverage: 1}
	files, err := Generate(t.Context(), o)
	require.NoError(t, err)
	for _, c := range read(t, files) {
		assert.NotContains(t, c, "null")
	}
}

// pages counts the data pages of column chunks, as arrow-go finds them.
func pages(t *testing.T, path string, column int) (n int, dictionary bool) {
	t.Helper()
	r, err := file.OpenParquetFile(path, false)
	require.NoError(t, err)
	defer r.Close()
	pr, err := r.RowGroup(0).GetColumnPageReader(column)
	require.NoError(t, err)
	for pr.Next() {
		if _, ok := pr.Page().(*file.DictionaryPage); ok {
			dictionary = true
		} else {
			n++
		}
	}
	require.NoError(t, pr.Err())
	return n, dictionary
}

func TestPageSizes(t *testing.T) {
	const rows = 20_000
	for _, version := range []int{1, 2} {
		o := Options{Model: small(true), Rows: rows, RowGroupRows: rows, PageBytes: MaxPageBytes, PageVersion: version}
		o.Out = t.TempDir()
		files, err := Generate(t.Context(), o)
		require.NoError(t, err)
		for _, column := range []int{0, 1, 4} {
			n, dictionary := pages(t, files[0].Path, column)
			assert.Equal(t, 1, n, "a chunk of one page")
			assert.False(t, dictionary)
		}
		o.Out, o.PageBytes = t.TempDir(), 64<<10
		files, err = Generate(t.Context(), o)
		require.NoError(t, err)
		n, _ := pages(t, files[0].Path, 4) // 5,800 lists of 20 ids: about a megabyte
		assert.Greater(t, n, 10)
		assert.Less(t, n, 60)

		o.Out, o.Encoding = t.TempDir(), "dictionary"
		files, err = Generate(t.Context(), o)
		require.NoError(t, err)
		_, dictionary := pages(t, files[0].Path, 4)
		assert.True(t, dictionary)
	}
}

// A dictionary that grows past its bound gives way to plain pages, and the rows are still the same.
func TestDictionaryFallsBackToPlain(t *testing.T) {
	m := small(false)
	m.Name, m.Dense, m.Sparse = "wide", 1, 1
	const rows = 200_000
	files, err := Generate(t.Context(), Options{Model: m, Rows: rows, RowGroupRows: rows, Out: t.TempDir(),
		Encoding: "dictionary", PageBytes: 128 << 10})
	require.NoError(t, err)
	r, err := file.OpenParquetFile(files[0].Path, false)
	require.NoError(t, err)
	defer r.Close()
	chunk, err := r.MetaData().RowGroup(0).ColumnChunk(2)
	require.NoError(t, err)
	assert.Contains(t, fmt.Sprint(chunk.Encodings()), "PLAIN")
	assert.Contains(t, fmt.Sprint(chunk.Encodings()), "RLE_DICTIONARY")
	assert.Equal(t, want(m, 0, rows), read(t, files))
}

func TestGenerateNamesAndCounts(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a", "b")
	var seen []int64
	files, err := Generate(t.Context(), Options{Model: small(false), Rows: 11, Out: out, Partitions: 4, RowGroupRows: 2,
		Progress: func(done, total int64) {
			assert.EqualValues(t, 11, total)
			seen = append(seen, done)
		}})
	require.NoError(t, err)
	var rows []int64
	for i, f := range files {
		assert.Equal(t, filepath.Join(out, fmt.Sprintf("part-%05d.parquet", i)), f.Path)
		rows = append(rows, f.Rows)
	}
	assert.Equal(t, []int64{3, 3, 3, 2}, rows)
	assert.Equal(t, []int64{2, 1}, files[0].RowGroups)
	assert.IsIncreasing(t, seen)
	assert.EqualValues(t, 11, seen[len(seen)-1])

	files, err = Generate(t.Context(), Options{Model: small(false), Rows: 0, Out: out + "0", Partitions: 2})
	require.NoError(t, err)
	assert.Len(t, files, 2)
	assert.Empty(t, files[0].RowGroups)
	read(t, files)
}

func TestGenerateRefuses(t *testing.T) {
	good := Options{Model: small(false), Rows: 10, Out: t.TempDir()}
	for name, change := range map[string]func(o *Options){
		"no model":          func(o *Options) { o.Model = Model{} },
		"negative rows":     func(o *Options) { o.Rows = -1 },
		"no folder":         func(o *Options) { o.Out = "" },
		"partitions":        func(o *Options) { o.Partitions = MaxPartitions + 1 },
		"no partitions":     func(o *Options) { o.Partitions = -1 },
		"row groups":        func(o *Options) { o.RowGroupRows = -1 },
		"large row groups":  func(o *Options) { o.RowGroupRows = maxRowGroupRows + 1 },
		"small pages":       func(o *Options) { o.PageBytes = 63 },
		"large pages":       func(o *Options) { o.PageBytes = MaxPageBytes + 1 },
		"page version":      func(o *Options) { o.PageVersion = 3 },
		"codec":             func(o *Options) { o.Codec = "lzo" },
		"encoding":          func(o *Options) { o.Encoding = "delta" },
		"coverage above 1":  func(o *Options) { o.Coverage = 1.1 },
		"negative coverage": func(o *Options) { o.Coverage = -0.1 },
		"coverage NaN":      func(o *Options) { o.Coverage = math.NaN() },
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			change(&o)
			_, err := Generate(t.Context(), o)
			require.ErrorIs(t, err, ErrOptions)
		})
	}
}

func TestGenerateLeavesWhatIsThere(t *testing.T) {
	out := t.TempDir()
	path := filepath.Join(out, "part-00001.parquet")
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o666))
	o := Options{Model: small(false), Rows: 10, Out: out, Partitions: 3}
	files, err := Generate(t.Context(), o)
	require.ErrorIs(t, err, fs.ErrExist)
	require.ErrorContains(t, err, "part-00001.parquet")
	assert.Empty(t, files)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(b))
	there, err := os.ReadDir(out)
	require.NoError(t, err)
	assert.Len(t, there, 1, "nothing new beside it")

	o.Overwrite = true
	files, err = Generate(t.Context(), o)
	require.NoError(t, err)
	assert.Equal(t, want(o.Model, 0, 10), read(t, files))
	partial, err := filepath.Glob(filepath.Join(out, "*.partial"))
	require.NoError(t, err)
	assert.Empty(t, partial)

	o.Out = path
	_, err = Generate(t.Context(), o)
	require.Error(t, err, "the folder is a file")
}

// TestOverwriteLeavesNoRowsOfTheSetBefore: a folder is read as one data set, so that a new data set must replace every
// file of the set before.
func TestOverwriteLeavesNoRowsOfTheSetBefore(t *testing.T) {
	out := t.TempDir()
	names := func() (n []string) {
		entries, err := os.ReadDir(out)
		require.NoError(t, err)
		for _, e := range entries {
			n = append(n, e.Name())
		}
		return n
	}
	mine := []string{"part-1.parquet", "part-00004.parquet.txt", "part-00007-0f3a.snappy.parquet"}
	for _, name := range mine {
		require.NoError(t, os.WriteFile(filepath.Join(out, name), nil, 0o644))
	}
	o := Options{Model: small(false), Rows: 60, Out: out, Partitions: 6}
	_, err := Generate(t.Context(), o)
	require.NoError(t, err)
	o.Rows, o.Partitions, o.Overwrite = 20, 2, true
	_, err = Generate(t.Context(), o)
	require.NoError(t, err)
	assert.ElementsMatch(t, append([]string{"part-00000.parquet", "part-00001.parquet"}, mine...), names())

	_, _, err = Import(t.Context(), strings.NewReader(""), ImportOptions{Out: out, Overwrite: true})
	require.NoError(t, err)
	assert.ElementsMatch(t, append([]string{"part-00000.parquet"}, mine...), names())
}

func TestGenerateStops(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	out := t.TempDir()
	o := Options{Model: small(false), Rows: 100_000, Out: out, Partitions: 10, RowGroupRows: 1000}
	o.Progress = func(done, _ int64) {
		if done > 50_000 {
			cancel(why)
		}
	}
	files, err := Generate(ctx, o)
	require.ErrorIs(t, err, why)
	assert.Empty(t, files)
	entries, err := os.ReadDir(out)
	require.NoError(t, err)
	assert.Empty(t, entries, "a part of the partitions would look like a data set")
}

func BenchmarkGenerate(b *testing.B) {
	for _, name := range []string{"rm1", "rm5"} {
		b.Run(name, func(b *testing.B) {
			m := model(b, name)
			rows := int64(262_144)
			if m.Lists {
				rows = 16_384
			}
			for b.Loop() {
				_, err := Generate(b.Context(), Options{Model: m, Rows: rows, Out: b.TempDir(), Overwrite: true})
				require.NoError(b, err)
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
