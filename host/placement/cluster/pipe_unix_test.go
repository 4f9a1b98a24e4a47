//go:build unix

package cluster

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/source"
)

// TestAPipeIsRefused: opening a pipe would wait for its writer for ever.
func TestAPipeIsRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe.parquet")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err := OpenFile(t.Context(), source.ParseLocation(pipe), "p", Format{})
	require.ErrorContains(t, err, pipe+" is not a regular file")
}
