package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/partitionfile"
)

func TestNamesFlag(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("x,y.parquet", nil, 0o600))
	for name, c := range map[string]struct{ args, want []string }{
		"none":                  {nil, nil},
		"empty":                 {[]string{"--in="}, nil},
		"several":               {[]string{"--in", "a,b", "--in=c"}, []string{"a", "b", "c"}},
		"a name with a comma":   {[]string{"--in", "x,y.parquet", "--in", "a,x"}, []string{"x,y.parquet", "a", "x"}},
		"commas in quotes":      {[]string{"--in", `"s3://b/x,y",z`}, []string{"s3://b/x,y", "z"}},
		"among others: divided": {[]string{"--in", "x,y.parquet,z"}, []string{"x", "y.parquet", "z"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			f := pflag.NewFlagSet("", pflag.ContinueOnError)
			addNames(f, &got, "in", "files")
			require.NoError(t, f.Parse(c.args))
			assert.Equal(t, c.want, got)
		})
	}
	code, _, errs := millrace(t, "preprocess", "--pipeline", "rm1", "--out", "out", "--in", `"a`)
	assert.Equal(t, exitUsage, code)
	errorLine(t, errs, "--in", "commas between")
}

// TestOddFileNames: a name that a shell lets a user type is the name of a file, not a pattern, list or URI.
func TestOddFileNames(t *testing.T) {
	data := generate(t, "--rows", "50") + "/part-00000.parquet"
	for _, name := range []string{
		"with spaces.parquet", "a,b.parquet", "what?.parquet", "x=1&y.parquet", "[1].parquet", "grüße 日本.parquet",
		"-minus.parquet", "#hash%20.parquet", "noending",
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			require.NoError(t, os.Link(data, name))
			r := decode[preprocessResult](t, must(t, "preprocess", "--pipeline", "rm1", "--in="+name, "--out", "a b,c",
				"--output", "json"))
			assert.EqualValues(t, 50, r.Rows)
			must(t, "dataset", "inspect", "--", name)
			must(t, "dataset", "import", "--out", "in", "--", name)
			assert.FileExists(t, filepath.Join("in", name))
			must(t, "drive", "create", "file:d%20%3f.flash?size=8MiB&slm=64MiB")
			must(t, "drive", "put", "file:d%20%3f.flash", "--", name)
			assert.FileExists(t, "d ?.flash")
			assert.Contains(t, must(t, "drive", "ls", "file:d%20%3f.flash"), name)
			r = decode[preprocessResult](t, must(t, "preprocess", "--pipeline", "rm1", "--drive", "file:d%20%3f.flash",
				"--in="+strings.ReplaceAll(strings.ReplaceAll(name, "[", `\[`), "?", `\?`), "--out", "from drive",
				"--output", "json"))
			assert.EqualValues(t, 50, r.Rows)
		})
	}
}

// TestFoldersOfOneName: data sets with a folder for each day have files of one name, and files may be equal to the
// byte. No row is lost, however many drives the files are dealt to, and Spark's and pyarrow's other files do not count.
func TestFoldersOfOneName(t *testing.T) {
	part := generate(t, "--rows", "500") + "/part-00000.parquet"
	top := t.TempDir()
	for _, day := range []string{"day=1", "day=2", "day=3"} {
		require.NoError(t, os.Mkdir(filepath.Join(top, day), 0o755))
		require.NoError(t, os.Link(part, filepath.Join(top, day, "part-0.parquet")))
	}
	require.NoError(t, os.WriteFile(filepath.Join(top, "_SUCCESS"), nil, 0o600))
	for name, in := range map[string][]string{
		"folders by pattern": {"--in", top + "/*"},
		"files by pattern":   {"--in", top + "/*/*.parquet"},
		"folders":            {"--in", top + "/day=1", "--in", top + "/day=2", top + "/day=3"},
	} {
		t.Run(name, func(t *testing.T) {
			r := decode[preprocessResult](t, must(t, append([]string{"preprocess", "--pipeline", "rm1", "--out",
				filepath.Join(t.TempDir(), "out"), "--output", "json"}, in...)...))
			assert.EqualValues(t, 1500, r.Rows)
			trained := decode[timedReport](t, must(t, append([]string{"train", "--pipeline", "rm1", "--spread", "3",
				"--batch", "100", "--measure", "1ms", "--trainer-rows-per-second", "1e6", "--output", "json"},
				in...)...))
			assert.EqualValues(t, 1500, trained.Rows)
		})
	}
	out := filepath.Join(t.TempDir(), "imported")
	code, _, errs := millrace(t, "dataset", "import", "--out", out, top+"/*")
	assert.Equal(t, exitFailed, code)
	errorLine(t, errs, "day=1/part-0.parquet", "day=2/part-0.parquet", "two folders")
	assert.NoDirExists(t, out)
	must(t, "dataset", "import", "--out", out, top+"/day=2")
	assert.FileExists(t, filepath.Join(out, "part-0.parquet"))

	// The files of --local have the same names, and a file that is named twice is refused.
	share := []string{"train", "--pipeline", "rm1", "--batch", "100", "--measure", "1ms", "--trainer-rows-per-second",
		"1e6",
		"--offload", "0.5", "--output", "json", "--root", top, "--in", top + "/*", "--accelerator", "mem:",
		"--local", top + "/*"}
	assert.EqualValues(t, 1500, decode[timedReport](t, must(t, share...)).Rows)
	code, _, errs = millrace(t, append(share, "--local", top+"/day=2/part-0.parquet")...)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "day=2/part-0.parquet is there twice")

	// A plan and a check refuse files of the same name, and name the folder from which files are named.
	deep := filepath.Join(top, "a", "b")
	require.NoError(t, os.MkdirAll(deep, 0o755))
	require.NoError(t, os.Link(part, filepath.Join(deep, "part-0.parquet")))
	two := []string{"--in", deep + "/part-0.parquet", "--in", top + "/a/part-0.parquet"}
	require.NoError(t, os.Link(part, filepath.Join(top, "a", "part-0.parquet")))
	for _, command := range [][]string{{"plan", "--pipeline", "rm1", "--t", "1e6"}, {"pipeline", "check", "rm1"}} {
		code, _, errs = millrace(t, append(command, two...)...)
		assert.Equal(t, exitFailed, code, command)
		assert.Contains(t, errs, "--root FOLDER")
		must(t, append(append(command, two...), "--root", top)...)
	}
}

// TestTheOrderOfFiles: every command that reads files one after the other has them in natural order, or as --sort says.
func TestTheOrderOfFiles(t *testing.T) {
	dir := t.TempDir()
	criteoRows(t, filepath.Join(dir, "day_10"), "a")
	criteoRows(t, filepath.Join(dir, "day_2"), "2", "2")
	for sort, want := range map[string][]string{"given": {"day_2", "day_10"}, "name": {"day_10", "day_2"}} {
		var paths []string
		for _, d := range decode[[]partitionfile.Description](t, must(t, "dataset", "inspect", dir, "--sort", sort,
			"--output",
			"json")) {
			paths = append(paths, filepath.Base(d.Path))
		}
		assert.Equal(t, want, paths)
		out := t.TempDir()
		must(t, "dataset", "import", dir, "--out", out+"/rows", "--sort", sort, "--progress", "none")
		must(t, "preprocess", "--in", out+"/rows", "--out", out+"/made", "--progress", "none", "--pipeline",
			file(t, "p.yaml", "ids: int32\n"+
				"sparse: [{columns: [cat_0..cat_25], ops: [fill_null: 0, positive_modulus: 99]}]\n"))
		first := map[string]int32{"given": 2, "name": 10}[sort]
		assert.Equal(t, first, firstKey(t, out+"/made", 3)[0])
		must(t, "pipeline", "init", dir, "--sort", sort)
	}
	code, _, errs := millrace(t, "pipeline", "init", dir, "--sort", "size")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, "size")
}
