package metricfile

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/trainmgr/offload"
)

// TestFileOfSeveralWriters: writers at once, each with a File of its own as each process has, lose none of
// each other's entries, and leave no temporary file.
func TestFileOfSeveralWriters(t *testing.T) {
	t.Parallel()
	const writers, each = 8, 5
	dir := t.TempDir()
	path := filepath.Join(dir, "metrics.json")
	keys := func(writer, i int) offload.Keys {
		return offload.KeyParts{Model: fmt.Sprintf("%d of %d", i, writer)}.Keys()
	}
	var group sync.WaitGroup
	for writer := range writers {
		group.Go(func() {
			for i := range each {
				store, err := New(path)
				if assert.NoError(t, err) {
					assert.NoError(t, store.Put(keys(writer, i), offload.Metrics{Gthp: 1 + float64(i)},
						offload.Known{Model: true}))
				}
			}
		})
	}
	group.Wait()
	store, err := New(path)
	require.NoError(t, err)
	for writer := range writers {
		for i := range each {
			m, known, err := store.Lookup(keys(writer, i))
			require.NoError(t, err)
			assert.True(t, known.Model, "writer %d, entry %d", writer, i)
			assert.InDelta(t, 1+float64(i), m.Gthp, 0)
		}
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		assert.True(t, e.Name() == "metrics.json" || e.Name() == "metrics.json.lock", e.Name())
	}
}

// TestFileOfAnotherVersion: a file of another version is not used, and is kept beside the one that replaces it.
func TestFileOfAnotherVersion(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"version": 0}`, `{"version": 2}`, "", strings.Repeat(" ", offload.MaxTableBytes+1)} {
		path := filepath.Join(t.TempDir(), "metrics.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		store, err := New(path)
		require.NoError(t, err)
		keys := offload.KeyParts{Model: "m"}.Keys()
		_, known, err := store.Lookup(keys)
		require.ErrorIs(t, err, offload.ErrTable)
		require.ErrorContains(t, err, path+".damaged")
		assert.Equal(t, offload.Known{}, known)
		require.NoError(t, store.Put(keys, offload.Metrics{Gthp: 1}, offload.Known{Model: true}))
		_, known, err = store.Lookup(keys)
		require.NoError(t, err)
		assert.True(t, known.Model)
		aside, err := os.ReadFile(path + ".damaged")
		require.NoError(t, err)
		assert.Equal(t, text, string(aside))
	}
}

func TestFileErrors(t *testing.T) {
	dir := t.TempDir()
	store, err := New(dir) // a folder has the name
	require.NoError(t, err)
	_, _, err = store.Lookup(offload.Keys{})
	require.Error(t, err)
	require.Error(t, store.Put(offload.Keys{}, offload.Metrics{}, offload.Known{}))
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	store, err = New(filepath.Join(file, "below"))
	require.NoError(t, err)
	require.ErrorContains(t, store.Put(offload.Keys{}, offload.Metrics{}, offload.Known{}), "offload metrics")
	store, err = New(filepath.Join(dir, "metrics"))
	require.NoError(t, err)
	require.ErrorIs(t, store.Put(offload.Keys{}, offload.Metrics{Gthp: -1}, offload.Known{}), offload.ErrMetrics)
	t.Setenv("XDG_CACHE_HOME", dir)
	store, err = New("")
	require.NoError(t, err)
	if runtime.GOOS == "linux" {
		assert.Equal(t, filepath.Join(dir, "millrace", "offload-metrics.json"), store.path)
	}
}
