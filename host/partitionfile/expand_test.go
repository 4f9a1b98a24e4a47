package partitionfile

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writeFiles makes empty files in a new folder.
func writeFiles(t *testing.T, names ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
	}
	return folder
}

// inFolder puts a folder before each name.
func inFolder(folder string, names ...string) []string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = filepath.Join(folder, name)
	}
	return paths
}

func TestExpand(t *testing.T) {
	folder := writeFiles(t, "b.parquet", "a.parquet", ".hidden.parquet", "_log.parquet", "c.tsv", "d.txt", "e.bin", "f")
	require.NoError(t, os.Mkdir(filepath.Join(folder, "folder.parquet"), 0o700))
	for name, c := range map[string]struct {
		format Format
		names  []string
		want   []string
	}{
		"a folder's Parquet":        {Parquet, []string{""}, []string{"a.parquet", "b.parquet"}},
		"a folder's text":           {CriteoTSV, []string{""}, []string{"c.tsv", "d.txt", "f"}},
		"a folder's binary rows":    {CriteoBinary, []string{""}, []string{"e.bin", "f"}},
		"a file of another ending":  {Parquet, []string{"f"}, []string{"f"}},
		"a pattern":                 {Parquet, []string{"[ab].*"}, []string{"a.parquet", "b.parquet"}},
		"each once, in their order": {Parquet, []string{"b.parquet", "", "a*"}, []string{"a.parquet", "b.parquet"}},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := Expand(inFolder(folder, c.names...), c.format)
			require.NoError(t, err)
			assert.Equal(t, inFolder(folder, c.want...), files)
		})
	}
}

func TestExpandFollowsLinks(t *testing.T) {
	data := writeFiles(t, "0.parquet", "1.parquet")
	links := t.TempDir()
	for _, name := range []string{"0.parquet", "1.parquet"} {
		require.NoError(t, os.Symlink(filepath.Join(data, name), filepath.Join(links, name)))
	}
	files, err := Expand([]string{links}, Parquet)
	require.NoError(t, err)
	assert.Equal(t, inFolder(links, "0.parquet", "1.parquet"), files)
	// A link that leads nowhere is an error, never a partition less.
	require.NoError(t, os.Symlink(filepath.Join(data, "none"), filepath.Join(links, "2.parquet")))
	_, err = Expand([]string{links}, Parquet)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "2.parquet")
}

// TestExpandPatterns checks that a pattern takes what a data set of folders holds, as Spark and pyarrow write it, and
// not what these leave beside the partitions.
func TestExpandPatterns(t *testing.T) {
	top := writeFiles(t, "_SUCCESS", ".part.crc", "top.parquet")
	for _, day := range []string{"day=1", "day=2", "_temporary"} {
		require.NoError(t, os.Mkdir(filepath.Join(top, day), 0o700))
		for _, name := range []string{"part-0.parquet", "_metadata", ".part-0.parquet.crc"} {
			require.NoError(t, os.WriteFile(filepath.Join(top, day, name), nil, 0o600))
		}
	}
	days := []string{"day=1/part-0.parquet", "day=2/part-0.parquet"}
	for pattern, want := range map[string][]string{
		"day=*":           days,
		"day=*/*":         days,
		"day=?/part-*":    days,
		"*":               append(slices.Clone(days), "top.parquet"),
		"*/*.parquet":     days,
		"_S*":             {"_SUCCESS"},
		"_temporary/p*":   {"_temporary/part-0.parquet"},
		"day=*/.part*":    {"day=1/.part-0.parquet.crc", "day=2/.part-0.parquet.crc"},
		"day=[2]/*":       days[1:],
		"day=1/_metadat*": {"day=1/_metadata"},
	} {
		files, err := Expand([]string{filepath.Join(top, pattern)}, Parquet)
		require.NoError(t, err, pattern)
		assert.Equal(t, inFolder(top, want...), files, pattern)
	}
	format, err := Resolver{}.FindFormat(t.Context(), []string{filepath.Join(top, "*")})
	require.NoError(t, err)
	assert.Equal(t, Parquet, format)
	_, err = Expand([]string{filepath.Join(top, "*SUCCESS")}, Parquet)
	require.ErrorIs(t, err, os.ErrNotExist, "a hidden name alone")
	require.NoError(t, os.Mkdir(filepath.Join(top, "day=3"), 0o700))
	_, err = Expand([]string{filepath.Join(top, "day=*")}, Parquet)
	require.ErrorContains(t, err, "day=3 holds no parquet files", "a folder less would be rows less")
}

func TestExpandRefuses(t *testing.T) {
	folder := t.TempDir()
	_, err := Expand([]string{folder}, Parquet)
	var empty *NoPartitionsError
	require.ErrorAs(t, err, &empty)
	require.ErrorContains(t, err, "holds no parquet files")
	_, err = Expand(inFolder(folder, "none*"), Parquet)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "none* matches no file")
	t.Chdir(folder)
	_, err = Expand([]string{"none*"}, Parquet)
	require.ErrorContains(t, err, folder, "a relative pattern: the error says where it begins")
	pipe := filepath.Join(folder, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, name := range []string{pipe, filepath.Join(folder, "pip?")} {
		_, err = Expand([]string{name}, Parquet)
		require.ErrorIs(t, err, ErrNotRegular)
		require.ErrorContains(t, err, pipe)
	}
}
