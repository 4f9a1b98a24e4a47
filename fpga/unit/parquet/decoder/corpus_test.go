package decoder

import (
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/reference"
	"github.com/millrace/millrace/internal/shared"
)

// corpus lists the files of a folder of the shared data.
func corpus(t testing.TB, folder string) []string {
	files, err := filepath.Glob(filepath.Join(shared.Path(t, folder), "*.parquet"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// readAll reads every column of a file with the kernel, in steps of several sizes, and with the reference. It returns
// the rows by path and the errors by path; kernel and reference must agree on both.
func readAll(t *testing.T, r io.ReaderAt, f *format.File) (map[string][]any, map[string]error) {
	rows, errs := map[string][]any{}, map[string]error{}
	for g := range f.RowGroups {
		for l := range f.Leaves {
			path := f.Leaves[l].Path
			where := fmt.Sprintf("row group %d, column %q", g, path)
			want, refErr := reference.ReadColumn(r, f, g, l)
			got, _, err := readKernel(t, r, f, g, l)
			if refErr != nil || err != nil {
				assert.Equal(t, refErr == nil, err == nil, "%s: reference %v, kernel %v", where, refErr, err)
				errs[path] = err
				continue
			}
			requireSameRows(t, want.Rows, got, where)
			requireSteps(t, r, f, g, l, want.Rows)
			rows[path] = append(rows[path], got...)
		}
	}
	return rows, errs
}

// requireSteps reads a column again in small steps, skipping between them.
func requireSteps(t *testing.T, r io.ReaderAt, f *format.File, g, l int, want []any) {
	all := [][]int{{7}, {3, -2}, {-5, 1, 64}}
	if underRace {
		all = all[1:2]
	} else if len(want) < 10000 {
		all = append(all, []int{1})
	}
	for _, steps := range all {
		got, places, err := readKernel(t, r, f, g, l, steps...)
		require.NoError(t, err)
		for i, p := range places {
			if !same(want[p], got[i]) {
				require.Failf(t, "another value", "column %d: steps %v: row %d: want %v, got %v", l, steps, p, want[p],
					got[i])
			}
		}
	}
}

// oracleBugs lists columns that an oracle reads wrongly, and the evidence.
var oracleBugs = map[string]bool{
	// The rows are the UUIDs that arrow-go and the file's uncompressed neighbours have; parquet-go warns of its own
	// offsets and gives empty strings.
	"lz4_raw_compressed_larger.parquet a parquet-go": true,
	// The page is one null without a byte of values: parquet-go wants compressed bytes, arrow-go ends before it.
	"datapage_v2_empty_datapage.snappy.parquet value parquet-go": true,
	"datapage_v2_empty_datapage.snappy.parquet value arrow-go":   true,
}

// twins hold the same rows as files in the codec LZ4, which no oracle reads.
var twins = map[string]string{
	"hadoop_lz4_compressed.parquet":        "lz4_raw_compressed.parquet",
	"non_hadoop_lz4_compressed.parquet":    "lz4_raw_compressed.parquet",
	"hadoop_lz4_compressed_larger.parquet": "lz4_raw_compressed_larger.parquet",
}

func TestCorpusAgreesWithOracles(t *testing.T) {
	columns, both := 0, 0
	for _, file := range append(corpus(t, "data/parquet-testing"),
		shared.Path(t, "data/criteo/rap_first_4096.parquet")) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r, size := openFile(t, file)
			defer r.Close()
			f, err := format.ReadFooter(r, size)
			require.NoError(t, err)
			rows, errs := readAll(t, r, f)
			for l := range f.Leaves {
				leaf := &f.Leaves[l]
				if errs[leaf.Path] != nil {
					continue
				}
				columns++
				agree, wrong := 0, 0
				for name, oracle := range map[string]func(io.ReaderAt, int64, *format.Leaf) ([]any,
					error){"parquet-go": parquetGoRows, "arrow-go": arrowGoRows} {
					if oracleBugs[filepath.Base(file)+" "+leaf.Path+" "+name] {
						wrong++
						continue
					}
					want, err := oracle(r, size, leaf)
					if err != nil {
						t.Logf("%s: %s cannot say: %v", leaf.Path, name, err)
						continue
					}
					requireSameRows(t, want, rows[leaf.Path], leaf.Path+" by "+name)
					agree++
				}
				if twin := twins[filepath.Base(file)]; twin != "" {
					r, size := openFile(t, filepath.Join(filepath.Dir(file), twin))
					f, err := format.ReadFooter(r, size)
					require.NoError(t, err)
					want, errs := readAll(t, r, f)
					require.Empty(t, errs)
					requireSameRows(t, want[leaf.Path], rows[leaf.Path], leaf.Path+" of "+twin)
					require.NoError(t, r.Close())
					agree++
				}
				assert.Positive(t, agree+wrong, "%s: no oracle reads it", leaf.Path)
				if agree == 2 {
					both++
				}
			}
		})
	}
	t.Logf("%d columns, %d with both oracles", columns, both)
}

// refused lists, by file, every column that must be refused and by what name; a file that is absent has none.
var refusedByName = map[string]map[string]string{
	"hadoop_lz4_compressed.parquet":                  {},
	"hadoop_lz4_compressed_larger.parquet":           {},
	"non_hadoop_lz4_compressed.parquet":              {},
	"byte_stream_split.zstd.parquet":                 {},
	"delta_length_byte_array.parquet":                {},
	"nested_lists.snappy.parquet":                    {},
	"nested_maps.snappy.parquet":                     {},
	"old_list_structure.parquet":                     {},
	"nonnullable.impala.parquet":                     {},
	"nullable.impala.parquet":                        {},
	"datapage_v2.snappy.parquet":                     {},
	"datapage_v1-corrupt-checksum.parquet":           {"a": "checksum", "b": "checksum"},
	"rle-dict-uncompressed-corrupt-checksum.parquet": {"long_field": "checksum", "binary_field": "checksum"},
	"datapage_v1-uncompressed-checksum.parquet":      {},
	"datapage_v1-snappy-compressed-checksum.parquet": {},
	"dict-page-offset-zero.parquet":                  {},
	"nation.dict-malformed.parquet":                  {},
	"concatenated_gzip_members.parquet":              {},
	"list_columns.parquet":                           {},
	"repeated_primitive_no_list.parquet":             {},
	"lz4_raw_compressed.parquet":                     {},
	"page_v2_empty_compressed.parquet":               {},
	"overflow_i16_page_cnt.parquet":                  {},
	"null_list.parquet":                              {},
	"unknown-logical-type.parquet":                   {},
	"float16_nonzeros_and_nans.parquet":              {},
	"int32_with_null_pages.parquet":                  {},
}

func TestCorpusRefusesByName(t *testing.T) {
	folder := shared.Path(t, "data/parquet-testing")
	for name, want := range refusedByName {
		t.Run(name, func(t *testing.T) {
			r, size := openFile(t, filepath.Join(folder, name))
			defer r.Close()
			f, err := format.ReadFooter(r, size)
			require.NoError(t, err)
			for l := range f.Leaves {
				path := f.Leaves[l].Path
				_, _, err := readKernel(t, r, f, 0, l)
				if want[path] == "" {
					require.NoError(t, err, path)
					continue
				}
				require.ErrorContains(t, err, want[path], path)
				if want[path] == "checksum" {
					require.ErrorIs(t, err, format.ErrCRC)
					var place *format.PageError
					require.ErrorAs(t, err, &place)
					require.Equal(t, path, place.Column)
				} else {
					require.ErrorIs(t, err, format.ErrUnsupported)
				}
			}
		})
	}
}

func TestCorpusEmptyV2PageIsOneNull(t *testing.T) {
	r, size := openFile(t, shared.Path(t, "data/parquet-testing/datapage_v2_empty_datapage.snappy.parquet"))
	defer r.Close()
	f, err := format.ReadFooter(r, size)
	require.NoError(t, err)
	rows, _, err := readKernel(t, r, f, 0, 0)
	require.NoError(t, err)
	require.Equal(t, []any{nil}, rows)
}

func TestCorpusOfBadData(t *testing.T) {
	for _, file := range corpus(t, "data/parquet-testing/bad_data") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r, size := openFile(t, file)
			defer r.Close()
			f, err := format.ReadFooter(r, size)
			if err != nil {
				t.Log(err)
				return
			}
			rows, errs := readAll(t, r, f)
			if filepath.Base(file) == "ARROW-GH-43605.parquet" {
				require.Empty(t, errs)
				require.Len(t, rows["min_fl"], 21186)
				return
			}
			for path, err := range errs {
				t.Log(path, err)
			}
			require.NotEmpty(t, errs)
		})
	}
}

func TestCorpusOffsetIndexes(t *testing.T) {
	found := 0
	for _, file := range corpus(t, "data/parquet-testing") {
		r, size := openFile(t, file)
		f, err := format.ReadFooter(r, size)
		require.NoError(t, err)
		for g := range f.RowGroups {
			for l := range f.Leaves {
				locations, err := format.ReadOffsetIndex(r, f, g, l)
				if f.Leaves[l].Unsupported != nil || f.RowGroups[g].Columns[l].Unsupported != nil {
					require.ErrorIs(t, err, format.ErrUnsupported)
					continue
				}
				require.NoError(t, err, file)
				found += len(locations)
				for _, p := range locations {
					b := make([]byte, p.Size)
					_, err := r.ReadAt(b, p.Offset)
					require.NoError(t, err)
					h, n, err := format.ParsePageHeader(b)
					require.NoError(t, err)
					require.True(t, h.HoldsRows())
					require.Equal(t, int(p.Size), n+int(h.Compressed))
				}
			}
		}
		require.NoError(t, r.Close())
	}
	require.Positive(t, found)
}
