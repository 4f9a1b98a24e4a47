package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCheckModels(t *testing.T) {
	for _, c := range []struct {
		models       []string
		vocabularies bool
		wrong        string
	}{
		{[]string{"rm1", "rm5"}, false, ""},
		{[]string{"rm1", "rm1-real"}, false, ""},
		{[]string{"criteo-5k", "d1-3"}, true, ""},
		{[]string{"criteo-5k", "rm1"}, false, "criteo-5k and rm1 are measured by different runs"},
		{[]string{"rm1", "criteo-zipf"}, false, "rm1 and criteo-zipf are measured by different runs"},
		{[]string{"rm9"}, false, "rm9"},
	} {
		vocabularies, err := checkModels(c.models)
		if c.wrong != "" {
			require.ErrorContains(t, err, c.wrong)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, c.vocabularies, vocabularies, "%v", c.models)
	}
}

// TestVocabularies makes tables of small data with one thread and two, and holds the peers to ours if
// MILLRACE_PEERS_PYTHON names an interpreter that has them.
func TestVocabularies(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	python := os.Getenv("MILLRACE_PEERS_PYTHON")
	for _, threads := range []string{"1", "2"} {
		out := t.TempDir()
		o, err := parse([]string{
			"-models", "criteo-5k,criteo-zipf,criteo-5k-tsv,d1-1,d1-2", "-rows", "20000", "-rounds", "1", "-time", "1ms",
			"-core", "-2", "-threads", threads, "-scratch", t.TempDir(), "-python", python,
		})
		require.NoError(t, err)
		r, err := run(t.Context(), o, func(string) {})
		require.NoError(t, err)
		require.Len(t, r.Tables, len(o.models))
		for _, table := range r.Tables {
			assert.EqualValues(t, 20_000, table.Rows)
			if python != "" {
				assert.Len(t, table.Lines, 1+len(vocabularyKinds))
			}
			for _, l := range table.Lines {
				assert.True(t, l.Timed, "%s, %s: %s", table.Model, l.Name, l.Output)
			}
		}
		require.NoError(t, r.save(out))
		name := map[string]string{"1": "vocabularies.md", "2": "vocabularies-2.md"}[threads]
		b, err := os.ReadFile(filepath.Join(out, name))
		require.NoError(t, err)
		assert.Contains(t, string(b), "## CRITEO-5K, packed: 20000 rows, 3 MB")
		left, err := os.ReadDir(o.scratch)
		require.NoError(t, err)
		assert.Empty(t, left)
	}
}

// TestOursInOrder checks that both threads' mini-batches come in the order of the rows.
func TestOursInOrder(t *testing.T) {
	w, ok := findVocabularyWork("criteo-5k")
	require.True(t, ok)
	var made []*block
	for _, threads := range []int{1, 2} {
		l, err := options{rows: 20_000, threads: threads}.openLoops(t.Context(), t.TempDir(), w)
		require.NoError(t, err)
		b, err := l.gather(t.Context())
		require.NoError(t, err)
		require.NoError(t, l.close())
		require.Equal(t, 20_000, b.rows)
		made = append(made, b)
	}
	_, _, err := compare(made[0], made[1], 0)
	require.NoError(t, err)
	assert.Zero(t, made[0].values[0][0], "the first key of all")
}
