package partitionfile

import (
	"context"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/filename"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
)

// writeFiles makes files with the first bytes of Parquet in a new folder.
func writeFiles(t *testing.T, names ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("PAR1"), 0o600))
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
	parquet := []string{"b.parquet", "a.PARQUET", "c.parq", "d.parquet.gzip", "000000_0", "noext"}
	folder := t.TempDir()
	for _, name := range append(slices.Clone(parquet), ".hidden.parquet", "_log.parquet") {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("PAR1"), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(folder, "folder.parquet"), 0o700))
	slices.Sort(parquet)
	for name, c := range map[string]struct {
		patterns NamePatterns
		names    []string
		want     []string
	}{
		"a folder":  {NamePatterns{}, []string{""}, parquet},
		"a pattern": {NamePatterns{}, []string{"[bcn]*[tq]"}, []string{"b.parquet", "c.parq", "noext"}},
		"a file":    {NamePatterns{}, []string{"noext"}, []string{"noext"}},
		"a list in its order": {NamePatterns{}, []string{"noext", "c*", "b*"},
			[]string{"noext", "c.parq", "b.parquet"}},
		"included": {NamePatterns{Include: []string{"*.parq*", "no*"}}, []string{""},
			[]string{"b.parquet", "c.parq", "d.parquet.gzip", "noext"}},
		"excluded": {NamePatterns{Exclude: []string{"*.*"}}, []string{""}, []string{"000000_0", "noext"}},
		"both, and names of files": {NamePatterns{Include: []string{"*q*"}, Exclude: []string{"*.gzip"}},
			[]string{"noext", "b.parquet", "c*"}, []string{"b.parquet", "c.parq"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Resolver{Names: c.patterns}
			files, err := r.Expand(t.Context(), source.ParseLocations(inFolder(folder, c.names...)...), Parquet)
			require.NoError(t, err)
			assert.Equal(t, source.ParseLocations(inFolder(folder, c.want...)...), files)
			format, err := r.FindFormat(t.Context(), source.ParseLocations(inFolder(folder, c.names...)...))
			require.NoError(t, err)
			assert.Equal(t, Parquet, format)
		})
	}
	for _, pattern := range []string{"[", "", "a/b"} {
		require.Error(t, NamePatterns{Include: []string{pattern}}.Check())
		require.ErrorContains(t, NamePatterns{Exclude: []string{pattern}}.Check(), "exclude")
	}
	require.NoError(t, NamePatterns{Include: []string{"a*"}, Exclude: []string{"*.md"}}.Check())
}

// TestFindOrders checks the order of files and the names of their partitions.
func TestFindOrders(t *testing.T) {
	folder := writeFiles(t, "day_1.parquet", "day_2.parquet", "day_10.parquet")
	list := []string{"day_10.parquet", "day_1.parquet", "day_2.parquet"}
	natural := []string{"day_1.parquet", "day_2.parquet", "day_10.parquet"}
	for _, c := range []struct {
		sort  dataset.Sort
		names []string
		want  []string
	}{
		{dataset.SortGiven, []string{""}, natural},
		{dataset.SortGiven, []string{"day_*"}, natural},
		{dataset.SortGiven, list, list},
		{dataset.SortGiven, []string{"day_10.parquet", "day_?.parquet"}, list},
		{dataset.SortNatural, list, natural},
		{dataset.SortName, []string{""}, []string{"day_1.parquet", "day_10.parquet", "day_2.parquet"}},
	} {
		files, err := Resolver{Sort: c.sort}.Find(t.Context(), source.ParseLocations(inFolder(folder, c.names...)...),
			Parquet)
		require.NoError(t, err)
		assert.Equal(t, c.want, filename.Names(files))
		assert.Equal(t, source.ParseLocations(inFolder(folder, c.want...)...), filename.Locations(files))
	}
	files, err := Resolver{Root: source.ParseLocation(filepath.Dir(folder))}.Find(t.Context(),
		source.ParseLocations(folder), Parquet)
	require.NoError(t, err)
	assert.Equal(t, filepath.Base(folder)+"/day_1.parquet", files[0].Name)
	for _, names := range [][]string{{"day_1.parquet", "day_1.parquet"}, {"", "day_1.parquet"}} {
		_, err := Resolver{}.Find(t.Context(), source.ParseLocations(inFolder(folder, names...)...), Parquet)
		require.ErrorIs(t, err, filename.ErrNames)
		assert.ErrorContains(t, err, "is there twice: a data set has each file once")
		_, err = Resolver{}.Expand(t.Context(), source.ParseLocations(inFolder(folder, names...)...), Parquet)
		require.ErrorIs(t, err, filename.ErrNames)
	}
}

// TestExpandOtherFormats checks that a file of another format beside the partitions is refused by name, with the
// pattern that leaves it out.
func TestExpandOtherFormats(t *testing.T) {
	binary := string(make([]byte, 160))
	for _, c := range []struct {
		format              Format
		rows, name, content string
		says                string // in the error; empty if the file is taken
	}{
		{Parquet, "PAR1", "README.md", "# rows\n", "README.md is text, not parquet: "},
		{Parquet, "PAR1", "keys.json", `{"a": 1}`, "keys.json is JSON, not parquet: "},
		{Parquet, "PAR1", "it's [new].csv", "a,b\n1,2\n", `--exclude 'it'\''s \[new].csv' leaves it out`},
		{Parquet, "PAR1", "x.parquet", "", "x.parquet is empty (0 bytes), not parquet"},
		{Parquet, "PAR1", "x.parquet", "\x00\x01\x02", "x.parquet is not parquet; --exclude x.parquet"},
		{Parquet, "PAR1", "day_1", criteoText, "day_1 is Criteo's text, not parquet; "},
		{CriteoTSV, criteoText, "b", "PAR1", "b is Parquet, not criteo-tsv"},
		{CriteoTSV, criteoText, "b.md", "rows of June\n", "b.md is text, not criteo-tsv"},
		{CriteoTSV, criteoText, "b.gz", "\x1f\x8b\x08", "zcat"},
		{CriteoTSV, criteoText, "b.txt", "malformed\n", ""},
		{CriteoTSV, criteoText, "b", "malformed\n" + criteoText, ""},
		{CriteoTSV, criteoText, "empty", "", ""},
		{CriteoBinary, binary, "b", "PAR1", "b is Parquet, not criteo-bin"},
		{CriteoBinary, binary, "b", "rows of June\n", "b is text, not criteo-bin"},
		{CriteoBinary, binary, "b.dat", binary, ""},
	} {
		folder := t.TempDir()
		for name, content := range map[string]string{"a": c.rows, c.name: c.content} {
			require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
		}
		for _, name := range []string{folder, filepath.Join(folder, "*")} {
			files, err := Resolver{}.Expand(t.Context(), source.ParseLocations(name), c.format)
			if c.says == "" {
				require.NoError(t, err, c.name)
				assert.Len(t, files, 2)
				continue
			}
			var unknown *UnknownFormatError
			require.ErrorAs(t, err, &unknown, c.name)
			require.ErrorContains(t, err, filepath.Join(folder, c.name)+" is ")
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "--exclude ")
			leftOut := Resolver{Names: NamePatterns{Include: []string{"a"}}}
			files, err = leftOut.Expand(t.Context(), source.ParseLocations(name), c.format)
			require.NoError(t, err)
			assert.Equal(t, source.ParseLocations(inFolder(folder, "a")...), files)
		}
	}
}

// TestExpandRefusesTables checks that files of a table with a log are refused, however they are named.
func TestExpandRefusesTables(t *testing.T) {
	for sign, kind := range map[string]string{
		"t/_delta_log/0.json": "Delta", "t/.hoodie/hoodie.properties": "Hudi", "t/metadata/v1.metadata.json": "Iceberg",
		"_delta_log/0.json": "Delta", "t/day=1/0-a-deletes.parquet": "Iceberg", "t/day=1/s.puffin": "Iceberg",
		"t/day=1/ducklake-0-delete.parquet": "Iceberg",
	} {
		top := t.TempDir()
		for _, name := range []string{sign, "t/day=1/a.parquet"} {
			require.NoError(t, os.MkdirAll(filepath.Join(top, filepath.Dir(name)), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(top, name), []byte("PAR1"), 0o600))
		}
		for _, name := range []string{"t/day=1", "t/day=*", "t/*/a.parquet", "t/day=1/a.parquet"} {
			_, err := Resolver{}.Expand(t.Context(), source.ParseLocations(inFolder(top, name)...), Parquet)
			var table *TableError
			require.ErrorAs(t, err, &table, "%s: %s", sign, name)
			assert.Equal(t, kind, table.Kind)
			assert.Contains(t, filepath.Join(top, sign), table.Sign)
		}
	}
	plain := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(plain, "metadata"), 0o700))
	for _, name := range []string{"a.parquet", "metadata/other.json"} {
		require.NoError(t, os.WriteFile(filepath.Join(plain, name), []byte("PAR1"), 0o600))
	}
	_, err := Resolver{}.Expand(t.Context(), source.ParseLocations(plain), Parquet)
	require.NoError(t, err)
}

func TestExpandFollowsLinks(t *testing.T) {
	data := writeFiles(t, "0.parquet", "1.parquet")
	links := t.TempDir()
	for _, name := range []string{"0.parquet", "1.parquet"} {
		require.NoError(t, os.Symlink(filepath.Join(data, name), filepath.Join(links, name)))
	}
	files, err := Resolver{}.Expand(t.Context(), source.ParseLocations(links), Parquet)
	require.NoError(t, err)
	assert.Equal(t, source.ParseLocations(inFolder(links, "0.parquet", "1.parquet")...), files)
	// A link that leads nowhere is an error, never a partition less.
	require.NoError(t, os.Symlink(filepath.Join(data, "none"), filepath.Join(links, "2.parquet")))
	_, err = Resolver{}.Expand(t.Context(), source.ParseLocations(links), Parquet)
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
			require.NoError(t, os.WriteFile(filepath.Join(top, day, name), []byte("PAR1"), 0o600))
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
		files, err := Resolver{}.Expand(t.Context(), source.ParseLocations(filepath.Join(top, pattern)), Parquet)
		require.NoError(t, err, pattern)
		assert.Equal(t, source.ParseLocations(inFolder(top, want...)...), files, pattern)
	}
	format, err := Resolver{}.FindFormat(t.Context(), source.ParseLocations(filepath.Join(top, "*")))
	require.NoError(t, err)
	assert.Equal(t, Parquet, format)
	_, err = Resolver{}.Expand(t.Context(), source.ParseLocations(filepath.Join(top, "*SUCCESS")), Parquet)
	require.ErrorIs(t, err, os.ErrNotExist, "a hidden name alone")
	require.NoError(t, os.Mkdir(filepath.Join(top, "day=3"), 0o700))
	_, err = Resolver{}.Expand(t.Context(), source.ParseLocations(filepath.Join(top, "day=*")), Parquet)
	require.ErrorContains(t, err, "day=3 holds no files", "a folder less would be rows less")
}

// store is a store of objects in memory, whose names are keys of s3://b/.
type store map[string]string

func (s store) List(_ context.Context, at source.Location) ([]source.Object, error) {
	pattern := at.Name()
	if strings.HasSuffix(pattern, "/") {
		pattern += "*"
	}
	var found []source.Object
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if ok, _ := path.Match(pattern, "s3://b/"+key); ok {
			found = append(found, source.Object{Location: source.ParseLocation("s3://b/" + key), Size: int64(len(s[key]))})
		}
	}
	if len(found) == 0 {
		return nil, &source.NotFoundError{Name: pattern}
	}
	return found, nil
}

func (s store) Open(context.Context, source.Location, source.Identity) (source.Source, error) {
	return nil, errors.ErrUnsupported
}

// TestExpandObjects takes objects of a store as files are taken. An object whose name says its format is not opened.
func TestExpandObjects(t *testing.T) {
	plain := store{"t/a.parquet": "", "t/b.parquet": "", "t/_SUCCESS": "", "t/day_$folder$": "", "u/x": ""}
	for _, uri := range []string{"s3://b/t/", "s3://b/t/*"} {
		files, err := Resolver{Opener: plain}.Expand(t.Context(), source.ParseLocations(uri), Parquet)
		require.NoError(t, err)
		assert.Equal(t, source.ParseLocations("s3://b/t/a.parquet", "s3://b/t/b.parquet"), files)
		files, err = Resolver{Opener: plain, Names: NamePatterns{Exclude: []string{"a*"}}}.
			Expand(t.Context(), source.ParseLocations(uri, "s3://b/t/a.parquet"), Parquet)
		require.NoError(t, err)
		assert.Equal(t, source.ParseLocations("s3://b/t/b.parquet"), files)
	}
	_, err := Resolver{Opener: plain}.Expand(t.Context(), source.ParseLocations("s3://b/u/"), Parquet)
	require.ErrorIs(t, err, errors.ErrUnsupported, "its first bytes are read")
	for sign, kind := range map[string]string{
		"t/_delta_log/0.json": "Delta", "t/.hoodie/hoodie.properties": "Hudi", "t/metadata/v1.metadata.json": "Iceberg",
		"metadata/v1.metadata.json": "Iceberg", "t/day=1/0-deletes.parquet": "Iceberg",
	} {
		objects := store{"t/day=1/a.parquet": "", sign: ""}
		for _, uri := range []string{"s3://b/t/day=1/", "s3://b/t/*/*"} {
			_, err := Resolver{Opener: objects}.Expand(t.Context(), source.ParseLocations(uri), Parquet)
			var table *TableError
			require.ErrorAs(t, err, &table, "%s: %s", sign, uri)
			assert.Equal(t, kind, table.Kind)
		}
	}
}

func TestExpandRefuses(t *testing.T) {
	folder := t.TempDir()
	_, err := Resolver{}.Expand(t.Context(), source.ParseLocations(folder), Parquet)
	var empty *NoPartitionsError
	require.ErrorAs(t, err, &empty)
	require.ErrorContains(t, err, "holds no files")
	_, err = Resolver{}.Expand(t.Context(), source.ParseLocations(inFolder(folder, "none*")...), Parquet)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "none* matches no file")
	t.Chdir(folder)
	_, err = Resolver{}.Expand(t.Context(), source.ParseLocations("none*"), Parquet)
	require.ErrorContains(t, err, folder, "a relative pattern: the error says where it begins")
	pipe := filepath.Join(folder, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, name := range []string{pipe, filepath.Join(folder, "pip?")} {
		_, err = Resolver{}.Expand(t.Context(), source.ParseLocations(name), Parquet)
		require.ErrorIs(t, err, ErrNotRegular)
		require.ErrorContains(t, err, pipe)
	}
}
