package flash_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/fpga/csd/flash"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
)

func openDrive(t *testing.T, o csd.Options) *csd.Drive {
	t.Helper()
	d, err := csd.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
}

func connect(t *testing.T, d *csd.Drive) nvme.Conn {
	t.Helper()
	c, err := controller.Local(d.Subsystem(), controller.HostID{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// TestABrokenFileFailsCommands: a host gets an error, and none of what is in the target's buffers.
func TestABrokenFileFailsCommands(t *testing.T) {
	d := openDrive(t, csd.Options{Path: filepath.Join(t.TempDir(), "drive"), Create: true, Size: 4 << 20, Plain: true})
	c := connect(t, d)
	defer flash.Break(t, d.Flash())()
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
	d, err := csd.Open(csd.Options{Path: path, Create: true, Size: 4 << 20, Plain: true})
	require.NoError(t, err)
	c := connect(t, d)
	mend := flash.Break(t, d.Flash())
	flush := nvme.Flush(1)
	_, err = c.IO(t.Context(), &flush, nil)
	require.ErrorIs(t, err, nvme.WriteFault)
	mend()
	_, err = c.IO(t.Context(), &flush, nil)
	require.ErrorIs(t, err, nvme.WriteFault, "what was to be flushed before may be lost")
	read := nvme.Read(1, 0, 8, 512)
	_, err = c.IO(t.Context(), &read, make([]byte, 4096))
	require.NoError(t, err, "it can be read")
	require.NoError(t, c.Close())
	require.ErrorContains(t, d.Close(), "may be lost")

	d = openDrive(t, csd.Options{Path: path, Plain: true})
	assert.EqualValues(t, 1, d.Subsystem().Counters().UnsafeShutdowns, "it was not closed in order")
	c = connect(t, d)
	_, err = c.IO(t.Context(), &flush, nil)
	require.NoError(t, err)
}
