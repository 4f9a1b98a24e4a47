package partitionfile

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/source"
)

// criteoText is a row of Criteo's text.
var criteoText = "1" + strings.Repeat("\t7", 13) + strings.Repeat("\t0000002a", 26) + "\n"

func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

func TestFindFormat(t *testing.T) {
	columns := []byte("PAR1 and more")
	for name, c := range map[string]struct {
		file    string
		content []byte
		want    Format
	}{
		"by the ending .parquet":   {"a.parquet", []byte("no matter what"), Parquet},
		"by the ending .tsv":       {"a.tsv", []byte("no matter what"), CriteoTSV},
		"Parquet by its beginning": {"a", columns, Parquet},
		"text by its tabs":         {"a", []byte(criteoText), CriteoTSV},
		"text without a label":     {"a", []byte(criteoText[2:]), CriteoTSV},
		"text by the ending .txt":  {"a.txt", []byte("7"), CriteoTSV},
		"rows by the ending .bin":  {"a.bin", []byte{1, 0, 0, 0}, CriteoBinary},
		"an empty file":            {"a", nil, Parquet},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, c.file, c.content)
			got, err := Resolver{}.FindFormat(t.Context(), source.ParseLocations(path))
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
	got, err := Resolver{}.FindFormat(t.Context(), source.ParseLocations(filepath.Join(t.TempDir(), "none")))
	require.NoError(t, err)
	assert.Equal(t, Parquet, got, "its reader reports that it does not exist")

	var mixed *MixedFormatsError
	_, err = Resolver{}.FindFormat(t.Context(), source.ParseLocations(write(t, "a.tsv", nil), write(t, "b.parquet", nil)))
	require.ErrorAs(t, err, &mixed)
	assert.Equal(t, []Format{CriteoTSV, Parquet}, []Format{mixed.FirstFormat, mixed.OtherFormat})
	var unknown *UnknownFormatError
	_, err = Resolver{}.FindFormat(t.Context(), source.ParseLocations(write(t, "a", []byte("a\tb\n"))))
	require.ErrorAs(t, err, &unknown)
}

func TestFormatsHaveSources(t *testing.T) {
	for format, want := range map[Format]program.Source{
		Parquet: program.Parquet, CriteoTSV: program.CriteoTSV, CriteoBinary: program.CriteoBinary,
	} {
		source, known := format.Source()
		assert.True(t, known)
		assert.Equal(t, want, source)
	}
	_, known := Format("orc").Source()
	assert.False(t, known)
}

func TestDescribe(t *testing.T) {
	type row struct {
		Label int32   `parquet:"label"`
		IDs   []int64 `parquet:"ids,list"`
	}
	var b bytes.Buffer
	require.NoError(t, parquet.Write(&b, make([]row, 7)))
	path := write(t, "a.parquet", b.Bytes())
	d, err := Describe(t.Context(), path, Parquet, text.Options{}, false)
	require.NoError(t, err)
	assert.Equal(t, []any{path, Parquet, int64(7), int64(b.Len()), []int64{7}},
		[]any{d.Path, d.Format, d.Rows, d.Bytes, d.RowGroups})
	require.Len(t, d.Columns, 2)
	assert.Equal(t, "label", d.Columns[0].Name)
	assert.Contains(t, d.Columns[1].Type, "list of ")
	require.NoError(t, d.CheckReadable())

	d, err = Describe(t.Context(), write(t, "a.tsv", []byte(criteoText)), CriteoTSV, text.Options{}, false)
	require.NoError(t, err)
	assert.Len(t, d.Columns, 40)

	d = Description{Path: "x", Columns: []Column{{Name: "m", Refused: "maps of maps"}}}
	require.ErrorContains(t, d.CheckReadable(), "x: no column can be read: m: maps of maps")
	_, err = Describe(t.Context(), t.TempDir(), Parquet, text.Options{}, false)
	require.ErrorIs(t, err, ErrNotRegular)
	_, err = Describe(t.Context(), path, "orc", text.Options{}, false)
	require.ErrorContains(t, err, "orc")
}
