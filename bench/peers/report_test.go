package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	o, err := parse([]string{"-models", "rm1", "-peers", "duckdb,arrow", "-python", "/some/where/python", "-rounds=2"})
	require.NoError(t, err)
	assert.Equal(t, "go run . -models rm1 -peers duckdb,arrow -python PYTHON -rounds=2", o.command(),
		"no paths of this machine")
	assert.True(t, o.wants("duckdb, SigridHash"))
	assert.True(t, o.wants("arrow-go"))
	assert.False(t, o.wants("parquet-go"))
	o, err = parse([]string{"--python=/x", "-out", "/y", "-scratch=/z"})
	require.NoError(t, err)
	assert.Equal(t, "go run . --python=PYTHON -out DIR -scratch=DIR", o.command())
	assert.True(t, o.wants("anybody"))
	for _, bad := range [][]string{
		{"-rounds", "0"}, {"-time", "0s"}, {"-coverage", "1.5"}, {"-models", "rm9"}, {"-rows", "-1"}, {"word"},
		{"-threads", "0"}, {"-threads", "2", "-core", "1"}, {"-threads", "2", "-python", "python3"},
	} {
		_, err := parse(bad)
		require.Error(t, err, "%v", bad)
	}
}

func TestDigits(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.123456: "0.123", 1: "1.00", 12.345: "12.3", 999.9: "1000", 9.996: "10.0", 41.06: "41.1",
		12345: "12345",
	} {
		assert.Equal(t, want, digits(v))
	}
	for v, want := range map[float64]string{
		12: "12.0", 12_345: "12.3 k", 1_234_567: "1.23 M", 549_999: "550 k", 999_700: "1.00 M", 999.7: "1.00 k",
		999.4: "999",
	} {
		assert.Equal(t, want, si(v))
	}
}

func TestCPUModel(t *testing.T) {
	const info = "processor\t: 0\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\n" +
		"model name\t: other\n"
	assert.Equal(t, "AMD EPYC, family 26, model 2", cpuModel(strings.NewReader(info)))
	assert.Equal(t, "unknown", cpuModel(strings.NewReader("")))
}

// TestRun makes a whole table of small data, without binding the test's process to a core.
func TestRun(t *testing.T) {
	out := t.TempDir()
	o, err := parse([]string{
		"-models", "rm1", "-rows", "3000", "-coverage", "0", "-rounds", "2", "-time", "1ms", "-core", "-2", "-peers",
		"parquet,arrow,polars", "-python", filepath.Join(out, "no-such-python"), "-scratch", t.TempDir(),
	})
	require.NoError(t, err)
	var said []string
	r, err := run(t.Context(), o, func(s string) { said = append(said, s) })
	require.NoError(t, err)
	require.Len(t, r.Tables, len(layouts))
	for _, table := range r.Tables {
		require.Len(t, table.Lines, 4)
		for i, name := range []string{"millrace", "arrow-go", "parquet-go"} {
			l := table.Lines[i]
			assert.Equal(t, name, l.Name)
			assert.True(t, l.Timed)
			assert.Len(t, l.Samples, 2)
			assert.Positive(t, l.RowsPerSecond.Min)
			assert.Positive(t, l.Ratio.Min)
		}
		assert.Equal(t, spread{1, 1, 1}, table.Lines[0].Ratio)
		assert.False(t, table.Lines[3].Timed, "a peer that does not start costs its row only")
		assert.Contains(t, table.Lines[3].Output, "not timed")
		assert.NotContains(t, table.Lines[3].Output, out, "no paths of this machine")
	}
	assert.Contains(t, strings.Join(said, "\n"), "polars is not timed")
	require.NoError(t, r.save(out))
	b, err := os.ReadFile(filepath.Join(out, "peers.json"))
	require.NoError(t, err)
	var back report
	require.NoError(t, json.Unmarshal(b, &back))
	assert.Equal(t, *r, back)
	b, err = os.ReadFile(filepath.Join(out, "peers.md"))
	require.NoError(t, err)
	assert.Contains(t, string(b), "## RM1, snappy, dictionary: 3000 rows")
	assert.Contains(t, string(b), "| parquet-go | ")
	left, err := os.ReadDir(o.scratch)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// TestRunThreads makes a table of small data with two threads, in files of another name.
func TestRunThreads(t *testing.T) {
	out := t.TempDir()
	o, err := parse([]string{
		"-models", "rm1", "-rows", "3000", "-rounds", "1", "-time", "1ms", "-threads", "2", "-peers", "parquet,arrow",
		"-scratch", t.TempDir(),
	})
	require.NoError(t, err)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	r, err := run(t.Context(), o, func(string) {})
	require.NoError(t, err)
	require.Len(t, r.Tables, len(layouts))
	for _, table := range r.Tables {
		assert.Equal(t, int64(3000), table.Rows)
		for _, l := range table.Lines {
			require.True(t, l.Timed, "%s: %s", l.Name, l.Output)
			assert.GreaterOrEqual(t, l.Samples[0].Rows, int64(3000), l.Name)
		}
	}
	require.NoError(t, r.save(out))
	b, err := os.ReadFile(filepath.Join(out, "peers-2.md"))
	require.NoError(t, err)
	assert.Contains(t, string(b), "2 threads each, with a file for each thread, in turn")
	assert.Contains(t, string(b), "not tied to cores")
}

func TestTie(t *testing.T) {
	_, err := tie(1 << 20)
	require.Error(t, err)
}
