package csd

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/fpga/csd/flash"
	"github.com/millrace/millrace/internal/shared"
)

// smallDisk mounts a tmpfs with the given mount options and returns its folder. Where mounting is not permitted, the
// test is skipped, and fails with CI=true.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		shared.Missing(t, "no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// TestADriveOnAFullDisk is opened, read and closed.
func TestADriveOnAFullDisk(t *testing.T) {
	dir := smallDisk(t, "size=2m")
	path := filepath.Join(dir, "drive")
	written(t, path)
	f, err := os.Create(filepath.Join(dir, "fill"))
	require.NoError(t, err)
	for b := make([]byte, 4096); err == nil; {
		_, err = f.Write(b)
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, f.Close())
	d, log := logged(t, Options{Path: path, Plain: true})
	assert.Contains(t, log.String(), "no space left")
	b := make([]byte, 512)
	_, err = d.Flash().ReadAt(b, lostSize-512)
	require.NoError(t, err)
	assert.EqualValues(t, 1, b[0])
	require.NoError(t, d.Close())
}

// TestADriveOnAReadOnlyFileSystem is opened for reading, and once at a time.
func TestADriveOnAReadOnlyFileSystem(t *testing.T) {
	dir := smallDisk(t, "size=2m")
	path := filepath.Join(dir, "drive")
	written(t, path)
	require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	d, log := logged(t, Options{Path: path, SLMBytes: testSLM})
	assert.True(t, d.Flash().ReadOnly())
	assert.Contains(t, log.String(), "for reading only")
	assert.NotContains(t, log.String(), "cannot be removed")
	b := make([]byte, 512)
	_, err := d.Flash().ReadAt(b, 0)
	require.NoError(t, err)
	_, err = d.Flash().WriteAt(b, 0)
	require.ErrorIs(t, err, flash.ErrReadOnly)
	require.ErrorIs(t, err, syscall.EROFS)
	require.NoError(t, d.Flash().Sync())
	_, err = Open(Options{Path: path, Plain: true})
	require.ErrorIs(t, err, ErrBusy)
	require.NoError(t, d.Close())
	_, err = Open(Options{Path: filepath.Join(dir, "new"), Create: true})
	require.True(t, errors.Is(err, syscall.EROFS), "%v", err)
}

// TestRootLeavesADriveItsOwner: a drive that root looks at can be opened by its node again.
func TestRootLeavesADriveItsOwner(t *testing.T) {
	if os.Getuid() != 0 {
		shared.Missing(t, "only root gives files away")
	}
	path := filepath.Join(t.TempDir(), "drive")
	written(t, path)
	const uid, gid = 12345, 54321
	for _, p := range []string{path, statePath(path)} {
		require.NoError(t, os.Chown(p, uid, gid))
	}
	d, err := Open(Options{Path: path, Plain: true})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	for _, p := range []string{path, statePath(path)} {
		st, err := os.Stat(p)
		require.NoError(t, err)
		sys := st.Sys().(*syscall.Stat_t)
		assert.Equal(t, [2]uint32{uid, gid}, [2]uint32{sys.Uid, sys.Gid}, p)
	}
}
