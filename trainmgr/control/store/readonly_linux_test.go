package store

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/shared"
)

// TestAFailingDiskIsNoDamage checks that nobody is told to give up the files of a member because they cannot be
// written now.
func TestAFailingDiskIsNoDamage(t *testing.T) {
	for _, text := range []string{
		"failed to commit tx, error: write c/etcd/member/snap/db: no space left on device",
		"failed to open database, error: open c/etcd/member/snap/db: too many open files",
	} {
		err := startError(text)
		require.NotErrorIs(t, err, ErrDamaged)
		assert.ErrorContains(t, err, text)
		assert.ErrorContains(t, err, "keep the files")
	}
	require.ErrorIs(t, startError("failed to recover v3 backend from snapshot"), ErrDamaged)

	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=80m"); err != nil { // a log has 64 MB from the beginning
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
