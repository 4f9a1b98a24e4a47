//go:build unix

package filelock

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHold checks that one holder excludes the others until it releases the file, and that a file which a killed
// process left excludes nobody.
func TestHold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Hold(path)
	require.NoError(t, err)
	_, err = Hold(path)
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, first.Release())
	require.NoFileExists(t, path)

	require.NoError(t, os.WriteFile(path, nil, 0o600))
	second, err := Hold(path)
	require.NoError(t, err)
	require.NoError(t, second.Release())
	_, err = Hold(filepath.Join(path, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestHoldWhileOthersRelease checks that a file which is removed between its opening and its lock is not taken for the
// lock of its name: at no time there are two holders.
func TestHoldWhileOthersRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var holders, taken atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				held, err := Hold(path)
				if err != nil {
					assert.ErrorIs(t, err, ErrLocked)
					continue
				}
				assert.EqualValues(t, 1, holders.Add(1))
				taken.Add(1)
				holders.Add(-1)
				assert.NoError(t, held.Release())
			}
		})
	}
	wg.Wait()
	assert.Positive(t, taken.Load())
}

func TestFileSystemsWithoutLocks(t *testing.T) {
	for _, err := range []error{syscall.ENOSYS, syscall.EOPNOTSUPP, syscall.ENOLCK} {
		assert.True(t, unsupported(fmt.Errorf("flock: %w", err)), "%v", err)
	}
	for _, err := range []error{ErrLocked, syscall.EBADF, syscall.EIO} {
		assert.False(t, unsupported(err), "%v", err)
	}
}
