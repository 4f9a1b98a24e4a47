package store

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/shared"
)

// TestAFailingDiskIsNoDamage checks that an error of the disk is not ErrDamaged, whose advice is to give up the files
// of the member.
func TestAFailingDiskIsNoDamage(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"failed to commit tx, error: write c/etcd/member/snap/db: no space left on device",
		"failed to open database, error: open c/etcd/member/snap/db: too many open files",
	} {
		err := fatalError(text)
		require.NotErrorIs(t, err, ErrDamaged)
		assert.ErrorContains(t, err, text)
		assert.ErrorContains(t, err, "keep the files")
	}
	require.ErrorIs(t, fatalError("failed to recover v3 backend from snapshot"), ErrDamaged)

	var log bytes.Buffer
	ended := 0
	hook := fatalHook{logger: slog.New(slog.NewTextHandler(&log, nil)), exit: func(code int) { ended = code }}
	hook.OnWrite(&zapcore.CheckedEntry{Entry: zapcore.Entry{Message: "failed to commit tx"}},
		[]zapcore.Field{zap.Error(unix.ENOSPC)}) // of a member that runs
	assert.Equal(t, 1, ended)
	assert.Contains(t, log.String(), "failed to commit tx, error: no space left on device: keep the files, make room")

	dir := t.TempDir()
	// etcd makes the next 64 MB of its log while it uses the first ones.
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256m"); err != nil {
		shared.Missing(t, "no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	kept(t, dir, 10)
	require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	_, err := Open(patient(t), quick(Options{Data: dir}))
	require.ErrorContains(t, err, "read-only file system")
	require.NotErrorIs(t, err, ErrDamaged)
	require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT, ""))
	kept(t, dir, 10)
}
