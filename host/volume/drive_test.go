package volume_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/faults"
	"github.com/millrace/millrace/sdk"
)

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*31 + i>>9)
	}
	return b
}

func readAll(t *testing.T, v *volume.Volume, name string) []byte {
	t.Helper()
	r, err := v.Open(t.Context(), name)
	require.NoError(t, err)
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	return b
}

func TestVolumeOnAFileDrive(t *testing.T) {
	for _, lba := range []int{512, 4096} {
		t.Run(fmt.Sprint(lba), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "drive")
			d, err := sdk.Create(t.Context(), fmt.Sprintf("file:%s?size=8MiB&lba=%d&slm=1MiB", path, lba),
				sdk.DeviceOptions{})
			require.NoError(t, err)
			v, err := volume.Open(t.Context(), d)
			require.NoError(t, err)
			big, small := pattern(3<<20+17), pattern(700)
			require.NoError(t, v.Put(t.Context(), "big.parquet", int64(len(big)), bytes.NewReader(big)))
			require.NoError(t, v.Put(t.Context(), "small.parquet", int64(len(small)), bytes.NewReader(small)))
			require.NoError(t, d.Close())

			d, err = sdk.Open(t.Context(), "file:"+path+"?slm=1MiB", sdk.DeviceOptions{})
			require.NoError(t, err)
			_, err = sdk.Open(t.Context(), "file:"+path, sdk.DeviceOptions{})
			require.ErrorIs(t, err, csd.ErrBusy)
			v, err = volume.Open(t.Context(), d)
			require.NoError(t, err)
			all, err := v.List(t.Context())
			require.NoError(t, err)
			require.Len(t, all, 2)
			assert.Equal(t, big, readAll(t, v, "big.parquet"))
			assert.Equal(t, small, readAll(t, v, "small.parquet"))
			// The extents are what a host names to the drive.
			got := make([]byte, len(small))
			_, err = d.ReadAt(got, all[1].Offset)
			require.NoError(t, err)
			assert.Equal(t, small, got)
			err = v.Put(t.Context(), "huge", 6<<20, strings.NewReader(""))
			require.ErrorIs(t, err, volume.ErrFull)
			require.NoError(t, d.Close())

			if tar, err := exec.LookPath("tar"); err == nil {
				out, err := exec.Command(tar, "-tf", path).CombinedOutput()
				require.NoError(t, err)
				assert.Equal(t, "big.parquet\nsmall.parquet\n", string(out))
				dir := t.TempDir()
				require.NoError(t, os.WriteFile(filepath.Join(dir, "theirs"), small, 0o644))
				out, err = exec.Command(tar, "-C", dir, "-cf", path, "theirs").CombinedOutput()
				require.NoError(t, err, string(out))
				d, err = sdk.Open(t.Context(), "file:"+path+"?slm=1MiB", sdk.DeviceOptions{})
				require.NoError(t, err, "a flash that tar rewrote, shorter, is the same drive")
				v, err = volume.Open(t.Context(), d)
				require.NoError(t, err)
				assert.Equal(t, small, readAll(t, v, "theirs"))
				require.NoError(t, d.Close())
			}
		})
	}
}

func TestPutOnADriveThatFails(t *testing.T) {
	injector, err := faults.New(new(faults.Script), faults.Options{})
	require.NoError(t, err)
	fail := func(document string) {
		script, err := faults.Parse([]byte(document))
		require.NoError(t, err)
		require.NoError(t, injector.Replace(script))
	}
	d, err := sdk.Open(t.Context(), "mem:?size=4MiB&slm=64KiB", sdk.DeviceOptions{WrapFlash: injector.Flash})
	require.NoError(t, err)
	defer func() { assert.NoError(t, d.Close()) }()
	v, err := volume.Open(t.Context(), d)
	require.NoError(t, err)
	data := pattern(100_000)
	require.NoError(t, v.Put(t.Context(), "old", int64(len(data)), bytes.NewReader(data)))
	fail("fail: [{operation: write, lba: 292}]")
	require.ErrorIs(t, v.Put(t.Context(), "new", int64(len(data)), bytes.NewReader(data)), nvme.WriteFault)
	all, err := v.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NoError(t, injector.Replace(new(faults.Script)))
	require.NoError(t, v.Put(t.Context(), "new", int64(len(data)), bytes.NewReader(data)))
	assert.Equal(t, data, readAll(t, v, "new"))
	fail("fail: [{operation: read, lba: 234}]")
	r, err := v.Open(t.Context(), "new")
	require.NoError(t, err)
	_, err = io.ReadAll(r)
	require.ErrorIs(t, err, nvme.UnrecoveredReadError)
}
