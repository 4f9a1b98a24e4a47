package starvation

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestStarvingIsRecorded: a wait that is too long leaves a trace, a short one and one right behind do not, and a second
// recorder of the process goes without.
func TestStarvingIsRecorded(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	dir := filepath.Join(t.TempDir(), "traces")
	r := Recording{Dir: dir, After: time.Hour}.Start(logger)
	require.NotNil(t, r)
	require.Nil(t, Recording{Dir: dir}.Start(logger), "one recorder a process")
	r.WatchWait()()
	require.NoDirExists(t, dir)

	r.options.After = time.Millisecond
	got := r.WatchWait()
	require.Eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.written == 1
	}, time.Minute, time.Millisecond)
	got()
	r.writeTrace()
	r.Stop()
	r.writeTrace()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1, "no second one so soon, none after the end")
	b, err := os.ReadFile(filepath.Join(dir, files[0].Name()))
	require.NoError(t, err)
	assert.True(t, bytes.HasPrefix(b, []byte("go 1.")), "%q", b[:min(len(b), 16)])
	assert.Contains(t, log.String(), "the trainer starves")

	none := Recording{}.Start(logger)
	require.Nil(t, none)
	none.WatchWait()()
	none.Stop()
}

func TestARecordingThatCannotBeWritten(t *testing.T) {
	var log bytes.Buffer
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	r := Recording{Dir: file, After: time.Hour}.Start(slog.New(slog.NewTextHandler(&log, nil)))
	require.NotNil(t, r)
	r.writeTrace()
	r.Stop()
	assert.Contains(t, log.String(), "starving is not recorded")
}
