package heartbeat

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAFenceThatIsNotKept checks that a file that cannot be read or written costs its protection and nothing else.
func TestAFenceThatIsNotKept(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	dir := t.TempDir()
	path := filepath.Join(dir, "fence.json")
	for _, junk := range []string{"", "{", `{"fence": -1}`, `{"fence": "7"}`, "\x00\x00"} {
		log.Reset()
		require.NoError(t, os.WriteFile(path, []byte(junk), 0o600))
		f := OpenFence(dir, logger)
		assert.Zero(t, f.Get(), "%q", junk)
		assert.Contains(t, log.String(), "cannot be read")
		require.NoError(t, f.See(3))
		assert.EqualValues(t, 3, OpenFence(dir, logger).Get())
	}
	// A crash between writing and renaming leaves the old one.
	require.NoError(t, os.WriteFile(path+".partial", []byte(`{"fe`), 0o600))
	assert.EqualValues(t, 3, OpenFence(dir, logger).Get())

	log.Reset()
	f := OpenFence(filepath.Join(path, "no folder"), logger)
	require.NoError(t, f.See(5))
	require.ErrorIs(t, f.See(4), ErrReplaced)
	assert.Contains(t, log.String(), "is not kept")

	f = OpenFence("", logger)
	require.NoError(t, f.See(5))
	require.ErrorIs(t, f.See(4), ErrReplaced)
}
