package decoder

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/reference"
	"github.com/millrace/millrace/internal/foreignparquettest"
)

// readFile reads every column that can be read of a file, by its path.
func readFile(t *testing.T, data []byte) (*format.File, map[string][]any) {
	f, err := format.ReadFooter(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	rows, _ := readAll(t, bytes.NewReader(data), f)
	return f, rows
}

// TestForeignFiles reads files of other writers with their faults, by the kernel and the reference: the rows are those
// of the same file without faults.
func TestForeignFiles(t *testing.T) {
	_, want := readFile(t, foreignparquettest.Twin())
	require.Len(t, want, 4)
	for _, file := range foreignparquettest.Files() {
		t.Run(file.Name, func(t *testing.T) {
			f, got := readFile(t, file.Bytes)
			require.EqualValues(t, foreignparquettest.Rows, f.Rows)
			require.Len(t, got, 4)
			for path, rows := range want {
				if path == "id" {
					path = file.ID
				}
				requireSameRows(t, rows, got[path], path)
			}
			if file.Refused != "" {
				l, ok := f.Leaf(file.Refused)
				require.True(t, ok)
				require.EqualError(t, l.Unsupported, "nesting of more than 63 levels is not supported")
			}
		})
	}
}

// TestForeignFaultsAreOfTheirWriters changes the name of the writer: without it the same pages are refused, for a
// header that says something else than its page is damage.
func TestForeignFaultsAreOfTheirWriters(t *testing.T) {
	for _, file := range foreignparquettest.Files()[:4] {
		for _, name := range []string{"parquet-cpp-arrow version", "parquet-cpp version"} {
			data := bytes.Replace(file.Bytes, []byte(name), bytes.Repeat([]byte("x"), len(name)), 1)
			if bytes.Equal(data, file.Bytes) {
				continue
			}
			f, err := format.ReadFooter(bytes.NewReader(data), int64(len(data)))
			require.NoError(t, err)
			leaf, ok := f.Leaf("ids")
			require.True(t, ok)
			_, err = reference.ReadColumn(bytes.NewReader(data), f, 0, leaf.Index)
			require.ErrorIs(t, err, format.ErrCorrupt)
			_, _, err = readKernel(t, bytes.NewReader(data), f, 0, leaf.Index)
			require.ErrorIs(t, err, format.ErrCorrupt)
		}
	}
}

// TestManyRowGroups reads a file of 5,000 row groups: nothing bounds their number but the footer.
func TestManyRowGroups(t *testing.T) {
	const n = 5000
	f, got := readFile(t, foreignparquettest.ManyRowGroups(n))
	require.Len(t, f.RowGroups, n)
	_, want := readFile(t, foreignparquettest.FewRowGroups(n))
	for path, rows := range want {
		requireSameRows(t, rows, got[path], fmt.Sprintf("%q", path))
	}
}
