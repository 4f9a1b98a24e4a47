package results

import (
	"io/fs"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheEmbeddedRunHasWhatThePlannerCites(t *testing.T) {
	r, err := Peers()
	require.NoError(t, err)
	assert.Equal(t, 1, max(r.Header.Threads, 1), "a rate of one core is wanted")
	for _, model := range []string{"rm1", "rm5"} {
		ours, ok := r.Rate(model, PlainLayout, Ours)
		require.True(t, ok, model)
		loops, ok := r.Rate(model, PlainLayout, TorchArrowLoops)
		require.True(t, ok, model)
		assert.Greater(t, ours, loops)
	}
	for _, part := range []string{r.Header.CPU, r.Header.Time, r.Header.Commit, r.Header.Command} {
		require.NotEmpty(t, part)
		assert.Contains(t, r.Source(), part)
	}
}

func TestWhatTheRunLacksIsAbsent(t *testing.T) {
	r, err := Peers()
	require.NoError(t, err)
	for _, c := range [][3]string{{"rm2", PlainLayout, Ours}, {"rm1", "zstd", Ours}, {"rm1", PlainLayout, "nobody"}} {
		_, ok := r.Rate(c[0], c[1], c[2])
		assert.False(t, ok, c)
	}
}

// TestReports checks that all runs are there, and what their tables need beside rates.
func TestReports(t *testing.T) {
	reports, err := Reports()
	require.NoError(t, err)
	one, err := Peers()
	require.NoError(t, err)
	require.Greater(t, len(reports), 1, "the run with two threads")
	require.Equal(t, one, reports[0], "the run with one thread is the first")
	for _, r := range reports {
		assert.NotEmpty(t, r.Header.Versions, r.Header.Command)
		assert.Equal(t, Ours, r.Programs()[0], "ours is the first")
		assert.Len(t, slices.Compact(slices.Sorted(slices.Values(r.Programs()))), len(r.Programs()), "each once")
	}
	_, err = read("nothing.json")
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

// TestLoaders checks the run of loaders.py, if there is one, and that a file of another form is refused.
func TestLoaders(t *testing.T) {
	r, err := Loaders()
	require.NoError(t, err)
	if r != nil {
		assert.NotEmpty(t, r.Header.Versions)
		for _, one := range r.Results {
			assert.Positive(t, one.RowsPerSecond, one.Side)
			assert.Positive(t, one.Cores, one.Side)
		}
	}
	r, err = parseLoaders([]byte(`{"results": [{"side": "Millrace", "cores": 1, "rows_per_second": 2}],
		"skipped": {"a (rm1)": "no module named a"}}`))
	require.NoError(t, err)
	assert.Equal(t, []LoaderResult{{Side: LoaderBase, Cores: 1, RowsPerSecond: 2}}, r.Results)
	assert.Equal(t, "no module named a", r.Skipped["a (rm1)"])
	_, err = parseLoaders([]byte(`[]`))
	assert.ErrorContains(t, err, "run make bench-loaders again")
}
