package store

import (
	"bytes"
	"compress/flate"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

// TestFormOfABackup reads a backup that an earlier build wrote: etcd's own snapshot, which holds keys of the control
// plane. Its bytes depend on etcd and on the time, so the test does not compare the bytes of a new backup. The kept
// file is compressed, since most of a database is empty pages.
func TestFormOfABackup(t *testing.T) {
	const kept = "testdata/backup.v1.hex"
	if goldenfile.Updating() {
		path, _ := backedUp(t)
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		var packed bytes.Buffer
		w, err := flate.NewWriter(&packed, flate.BestCompression)
		require.NoError(t, err)
		_, err = w.Write(raw)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		goldenfile.Bytes(t, kept, packed.Bytes())
	}
	raw, err := io.ReadAll(flate.NewReader(bytes.NewReader(goldenfile.Read(t, kept))))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "control.snapshot")
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	b, err := ReadBackup(path)
	require.NoError(t, err)
	assert.Equal(t, 1, b.Jobs)
	assert.Equal(t, 1, b.Nodes)
	assert.Positive(t, b.Revision)
	assert.Positive(t, b.first, "what fences are counted from")
	assert.Equal(t, "1", Format, "other keys are another format, which this build must still read")
}
