package parquet

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/shared"
)

// corpus lists the files of a folder of the shared data.
func corpus(t testing.TB, folder string) []string {
	files, err := filepath.Glob(filepath.Join(shared.Path(t, folder), "*.parquet"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// readAll reads every column of a file with the kernel and the reference and returns the rows by path, and every error by
// path; the two must agree on which columns they refuse.
func readAll(t *testing.T, r io.ReaderAt, f *File) (map[string][]any, map[string]error) {
	rows, errs := map[string][]any{}, map[string]error{}
	for g := range f.RowGroups {
		for l := range f.Leaves {
			path := f.Leaves[l].Path
			where := fmt.Sprintf("row group %d, column %q", g, path)
			want, refErr := ReadColumnReference(r, f, g, l)
			got, _, err := readKernel(t, r, f, g, l)
			if refErr != nil || err != nil {
				assert.Equal(t, refErr == nil, err == nil, "%s: reference %v, kernel %v", where, refErr, err)
				errs[path] = err
				continue
			}
			requireSameRows(t, want.Rows, got, where)
			for _, steps := range [][]int{{1}, {7}, {3, -2}, {-5, 1, 64}} {
				part, places, err := readKernel(t, r, f, g, l, steps...)
				require.NoError(t, err, where)
				for i, p := range places {
					if !same(want.Rows[p], part[i]) {
						require.Failf(t, "another value", "%s: steps %v: row %d: want %v, got %v", where, steps, p, want.Rows[p], part[i])
					}
				}
			}
			rows[path] = append(rows[path], got...)
		}
	}
	return rows, errs
}

func TestCorpusAgreesWithParquetGo(t *testing.T) {
	for _, file := range append(corpus(t, "data/parquet-testing"), shared.Path(t, "data/criteo/rap_first_4096.parquet")) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r, size := openFile(t, file)
			defer r.Close()
			f, err := ReadFooter(r, size)
			require.NoError(t, err)
			rows, errs := readAll(t, r, f)
			for path, err := range errs {
				t.Log(path, err)
			}
			for l := range f.Leaves {
				leaf := &f.Leaves[l]
				if errs[leaf.Path] != nil {
					continue
				}
				want, err := parquetGoRows(r, size, leaf)
				if err != nil {
					t.Logf("%s: no oracle: %v", leaf.Path, err)
					continue
				}
				requireSameRows(t, want, rows[leaf.Path], leaf.Path)
			}
		})
	}
}

// parquetGoRows reads a column with parquet-go, which panics on some files.
func parquetGoRows(r io.ReaderAt, size int64, leaf *Leaf) (rows []any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("parquet-go: %v", p)
		}
	}()
	f, err := pq.OpenFile(r, size)
	if err != nil {
		return nil, err
	}
	for _, g := range f.RowGroups() {
		pages := g.ColumnChunks()[leaf.Index].Pages()
		defer pages.Close()
		for {
			p, err := pages.ReadPage()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			values := make([]pq.Value, p.NumValues())
			n, err := p.Values().ReadValues(values)
			if err != nil && !errors.Is(err, io.EOF) {
				return nil, err
			}
			for _, v := range values[:n] {
				rows = addLevels(rows, leaf, v.RepetitionLevel(), v.DefinitionLevel(), parquetGoValue(leaf, v))
			}
		}
	}
	return rows, nil
}

// addLevels adds a value with its levels to rows, as Dremel says.
func addLevels(rows []any, leaf *Leaf, rep, def int, v any) []any {
	if def < int(leaf.MaxDef) {
		v = nil
	}
	switch {
	case !leaf.List:
		return append(rows, v)
	case rep > 0:
		list := rows[len(rows)-1].([]any)
		rows[len(rows)-1] = append(list, v)
		return rows
	case def >= int(leaf.RepDef):
		return append(rows, []any{v})
	case def == int(leaf.RepDef)-1:
		return append(rows, []any{})
	}
	return append(rows, nil)
}

func parquetGoValue(leaf *Leaf, v pq.Value) any {
	if v.IsNull() {
		return nil
	}
	switch leaf.Physical {
	case Boolean:
		if v.Boolean() {
			return int64(1)
		}
		return int64(0)
	case Int32:
		if leaf.Unsigned {
			return int64(v.Uint32())
		}
		return int64(v.Int32())
	case Int64:
		return v.Int64()
	case Float:
		return v.Float()
	case Double:
		return v.Double()
	}
	return append([]byte{}, v.ByteArray()...)
}

func TestCorpusOfBadData(t *testing.T) {
	for _, file := range corpus(t, "data/parquet-testing/bad_data") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r, size := openFile(t, file)
			defer r.Close()
			f, err := ReadFooter(r, size)
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
