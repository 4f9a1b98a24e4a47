package summaries

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/vocabulary"
)

// TestPartsAreRemovedFromTheLastOn: a process that ends while it removes them leaves the first ones, and another
// process goes on from them.
func TestPartsAreRemovedFromTheLastOn(t *testing.T) {
	f := &folder{path: t.TempDir()}
	for i := 1; i <= 3; i++ {
		path := filepath.Join(f.path, partName(i, i))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		f.parts = append(f.parts, part{first: i, last: i, file: &vocabulary.PartialFile{Path: path}})
	}
	second := f.parts[1].file.Path
	require.NoError(t, os.Remove(second))
	require.NoError(t, os.MkdirAll(filepath.Join(second, "full"), 0o700), "a folder that os.Remove refuses")
	require.Error(t, f.remove())
	assert.FileExists(t, f.parts[0].file.Path)
	assert.NoFileExists(t, f.parts[2].file.Path)
	require.NoError(t, os.RemoveAll(second))
	require.NoError(t, os.WriteFile(second, nil, 0o600))
	require.NoError(t, os.WriteFile(f.parts[2].file.Path, nil, 0o600))
	require.NoError(t, f.remove())
	assert.NoDirExists(t, f.path)
}

// TestAFolderHasOneProcess opens a folder and removes it at once, several times in parallel: there is one user at a
// time, and a folder that another uses already is not removed.
func TestAFolderHasOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work")
	var users, passes atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				f, err := openFolder(path, description{Version: descriptionVersion})
				if err != nil {
					assert.True(t, errors.Is(err, ErrInUse) || errors.Is(err, fs.ErrNotExist), "%v", err)
					continue
				}
				assert.EqualValues(t, 1, users.Add(1))
				assert.FileExists(t, filepath.Join(path, lockName))
				passes.Add(1)
				users.Add(-1)
				assert.NoError(t, f.remove())
				assert.NoError(t, f.close())
			}
		})
	}
	wg.Wait()
	assert.Positive(t, passes.Load())
}
