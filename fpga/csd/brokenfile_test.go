package csd

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
)

// brokenFile is a file that can be neither read at an offset, nor written there, nor synced.
func brokenFile(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, errors.Join(r.Close(), w.Close())) })
	return w
}

func TestFileFlashCountsWhatItDid(t *testing.T) {
	ff, err := openFileFlash(filepath.Join(t.TempDir(), "flash"), true)
	require.NoError(t, err)
	defer func() { assert.NoError(t, ff.Close()) }()
	ff.size = 4 << 20
	require.NoError(t, ff.extendFile())
	good := ff.f
	ff.f = brokenFile(t)
	defer func() { ff.f = good }()
	b := make([]byte, 4096)
	n, err := ff.ReadAt(b, 0)
	require.Error(t, err)
	assert.Zero(t, n, "read")
	n, err = ff.WriteAt(b, 0)
	require.Error(t, err)
	assert.Zero(t, n, "written")
}

func TestStripesCountWhatWasDone(t *testing.T) {
	var s stripes
	failed := errors.New("failed")
	n, err := s.eachStripe(stripeSize-100, 3*stripeSize, true, func(_ int64, from, to int) (int, error) {
		if from < 100+stripeSize {
			return to - from, nil
		}
		return 7, failed
	})
	require.ErrorIs(t, err, failed)
	assert.Equal(t, 100+stripeSize+7, n)
	n, err = s.eachStripe(5, 10, false, func(_ int64, from, to int) (int, error) { return to - from, nil })
	require.NoError(t, err)
	assert.Equal(t, 10, n)
}

// TestABrokenFileFailsCommands: a host gets an error, and none of what is in the target's buffers.
func TestABrokenFileFailsCommands(t *testing.T) {
	d := openDrive(t, Options{Path: filepath.Join(t.TempDir(), "drive"), Create: true, Size: 4 << 20, Plain: true})
	c := connect(t, d)
	ff := d.flash.(*fileFlash)
	good := ff.f
	ff.f = brokenFile(t)
	defer func() { ff.f = good }()
	cmd := nvme.Read(1, 8, 8, 512)
	_, err := c.IO(t.Context(), &cmd, make([]byte, 4096))
	require.ErrorIs(t, err, nvme.UnrecoveredReadError)
	cmd = nvme.Write(1, 8, 8, 512, false)
	_, err = c.IO(t.Context(), &cmd, make([]byte, 4096))
	require.ErrorIs(t, err, nvme.WriteFault)
	page := make([]byte, nvme.ErrorEntrySize*2)
	cmd = nvme.GetLog(nvme.LogErrors, 0, 0, uint32(len(page)))
	_, err = c.Admin(t.Context(), &cmd, page)
	require.NoError(t, err)
	for _, entry := range nvme.UnmarshalErrors(page) {
		assert.EqualValues(t, 8, entry.LBA, "the first block that failed")
	}
}

// TestASyncThatFailedIsNotForgotten: the kernel reports what it could not write to one sync only, and has dropped it.
func TestASyncThatFailedIsNotForgotten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	d, err := Open(Options{Path: path, Create: true, Size: 4 << 20, Plain: true})
	require.NoError(t, err)
	c := connect(t, d)
	ff := d.flash.(*fileFlash)
	good := ff.f
	ff.f = brokenFile(t)
	flush := nvme.Flush(1)
	_, err = c.IO(t.Context(), &flush, nil)
	require.ErrorIs(t, err, nvme.WriteFault)
	ff.f = good
	_, err = c.IO(t.Context(), &flush, nil)
	require.ErrorIs(t, err, nvme.WriteFault, "what was to be flushed before may be lost")
	read := nvme.Read(1, 0, 8, 512)
	_, err = c.IO(t.Context(), &read, make([]byte, 4096))
	require.NoError(t, err, "it can be read")
	require.NoError(t, c.Close())
	require.ErrorContains(t, d.Close(), "may be lost")

	d = openDrive(t, Options{Path: path, Plain: true})
	assert.EqualValues(t, 1, d.Subsystem().Counters().UnsafeShutdowns, "it was not closed in order")
	c = connect(t, d)
	_, err = c.IO(t.Context(), &flush, nil)
	require.NoError(t, err)
}
