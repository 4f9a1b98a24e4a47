package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestInputs: --in takes several files, as a shell makes them of a pattern, quoted patterns and folders; and finds
// the format by the contents of the files.
func TestInputs(t *testing.T) {
	data := generate(t, "--rows", "300", "--partitions", "3")
	parts := []string{data + "/part-00000.parquet", data + "/part-00001.parquet", data + "/part-00002.parquet"}
	text := strings.Repeat("1"+strings.Repeat("\t7", 13)+strings.Repeat("\t0000002a", 26)+"\n", 5)
	tsv, noName := file(t, "rows.tsv", text), file(t, "rows", text)
	bin := file(t, "rows.bin", strings.Repeat("\x01\x00\x00\x00", 40*5))
	odd := filepath.Join(t.TempDir(), "extensionless")
	part, err := os.ReadFile(parts[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(odd, part, 0o600))
	preprocess := func(pipeline string, in ...string) (code int, rows int64, errs string) {
		out := filepath.Join(t.TempDir(), "out")
		code, stdout, errs := millrace(t,
			append([]string{
				"preprocess", "--progress", "none", "--output", "json", "--pipeline", pipeline, "--out", out,
			}, in...)...)
		if code == exitDone {
			rows = decode[preprocessResult](t, stdout).Rows
		}
		return code, rows, errs
	}
	for name, c := range map[string]struct {
		pipeline string
		in       []string
		rows     int64
	}{
		"several arguments":            {"rm1", []string{"--in", parts[0], parts[1], parts[2]}, 300},
		"arguments before other flags": {"rm1", []string{"--in", parts[0], parts[1], "--engine", "cpu"}, 200},
		"a quoted pattern":             {"rm1", []string{"--in", data + "/part-*[12].parquet"}, 200},
		"parquet by its content":       {"rm1", []string{"--in", odd}, 100},
		"text by its name":             {"criteo", []string{"--in", tsv}, 5},
		"text by its content":          {"criteo", []string{"--in", noName}, 5},
		"a folder of text":             {"criteo", []string{"--in", filepath.Dir(tsv)}, 5},
		"binary rows by their name":    {"criteo", []string{"--in", bin}, 5},
		"what is said holds":           {"criteo", []string{"--in", noName, "--input-format", "criteo-tsv"}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			code, rows, errs := preprocess(c.pipeline, c.in...)
			require.Equal(t, exitDone, code, errs)
			assert.Equal(t, c.rows, rows)
		})
	}
	for name, c := range map[string]struct {
		in   []string
		says string
	}{
		"two formats": {[]string{"--in", parts[0], tsv}, "a data set has one format"},
		"neither": {[]string{"--in", file(t, "rows.csv", "a,b\n")},
			"say what it is with --input-format"},
		"arguments without --in": {[]string{parts[0]}, "files are named with --in"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, errs := preprocess("rm1", c.in...)
			assert.Equal(t, exitUsage, code)
			errorLine(t, errs, c.says)
		})
	}
}

// inspect and import find a file's format as preprocess does; the format of standard input must be named.
func TestFormatsAreFoundEverywhere(t *testing.T) {
	text := strings.Repeat("1"+strings.Repeat("\t7", 13)+strings.Repeat("\t0000002a", 26)+"\n", 5)
	noName := file(t, "rows", text)
	assert.Contains(t, must(t, "dataset", "inspect", noName), "criteo-tsv, 5 rows")
	assert.Contains(t, must(t, "dataset", "inspect", generate(t, "--rows", "7")), "parquet, 7 rows")
	assert.Contains(t,
		must(t, "dataset", "import", "--progress", "none", "--out", filepath.Join(t.TempDir(), "out"), noName), "5")
	code, _, errs := millrace(t, "dataset", "import", "--out", filepath.Join(t.TempDir(), "out"), "-")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, "what standard input is")
}
