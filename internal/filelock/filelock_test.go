//go:build unix

package filelock

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLock checks that a file has one lock at a time, and that closing it releases the lock.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, Lock(first))
	second, err := os.Open(path)
	require.NoError(t, err)
	defer second.Close()
	require.ErrorIs(t, TryLock(second), ErrLocked)
	require.NoError(t, first.Close())
	require.NoError(t, TryLock(second))
	third, err := os.Open(path)
	require.NoError(t, err)
	defer third.Close()
	require.ErrorIs(t, TryLock(third), ErrLocked)
	require.NoError(t, second.Close())
	require.NoError(t, Lock(third))
}
