//go:build unix

package store

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAPipeIsNoBackup: opening a pipe would wait for its writer for ever.
func TestAPipeIsNoBackup(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "backup")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err := ReadBackup(pipe)
	require.ErrorIs(t, err, ErrBackup)
	require.ErrorContains(t, err, pipe+" is not a regular file")
}
