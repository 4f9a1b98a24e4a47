package sdk

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
)

// TestRegionsOfADriveInAFile: devices of one process share a drive in a file, a region each. The drive stays locked
// against others until the last of them is closed, and is opened again by the next.
func TestRegionsOfADriveInAFile(t *testing.T) {
	uri := "file:" + filepath.Join(t.TempDir(), "drive")
	dev, err := Create(t.Context(), uri+"?size=1MiB&regions=3", DeviceOptions{})
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	shared := new(SharedDrives)
	open := func(query string, o DeviceOptions) (*Device, error) { return Open(t.Context(), uri+query, o) }
	for range 2 {
		var devices []*Device
		for _, query := range []string{"?slm=3MiB", "?slm=3MiB&region=1", "?slm=3MiB&region=2&regions=3&size=1MiB&lba=512"} {
			d, err := open(query, DeviceOptions{Shared: shared, Owner: &csd.Owner{Name: "node n", Drive: "d"}})
			require.NoError(t, err, query)
			devices = append(devices, d)
			_, err = d.ReserveSLM(t.Context(), 1<<20)
			require.NoError(t, err, "each has memory of its own")
		}
		_, err := open("?slm=3MiB&region=3", DeviceOptions{Shared: shared})
		require.ErrorIs(t, err, ErrRegion)
		for _, query := range []string{"?slm=4MiB", "", "?slm=3MiB&threads=2", "?slm=3MiB&regions=2", "?slm=3MiB&size=2MiB",
			"?slm=3MiB&lba=4096", "?slm=3MiB&size=0"} {
			_, err := open(query, DeviceOptions{Shared: shared})
			require.ErrorIs(t, err, csd.ErrGeometry, query)
		}
		for len(devices) > 0 {
			for _, o := range []DeviceOptions{{}, {Shared: new(SharedDrives)}} {
				_, err := open("?slm=3MiB&region=1", o)
				require.ErrorIs(t, err, csd.ErrBusy)
				assert.ErrorContains(t, err, "node n")
			}
			require.NoError(t, devices[0].Close())
			devices = devices[1:]
		}
		assert.NoFileExists(t, filepath.Join(filepath.Dir(uri[len("file:"):]), "drive.owner"))
	}
	_, err = Create(t.Context(), uri+"?size=1MiB", DeviceOptions{Shared: shared})
	require.ErrorIs(t, err, os.ErrExist)
	_, err = open("-none", DeviceOptions{Shared: shared})
	require.ErrorIs(t, err, csd.ErrNoDrive)
	dev, err = open("?slm=1MiB&threads=2", DeviceOptions{Shared: shared})
	require.NoError(t, err, "no device has it open, so that it may be opened otherwise")
	require.NoError(t, dev.Close())
}

// TestRegionsAreOpenedAndClosedAtOnce: openings and closings of the regions of a drive in a file never meet another
// lock than their own.
func TestRegionsAreOpenedAndClosedAtOnce(t *testing.T) {
	uri := "file:" + filepath.Join(t.TempDir(), "drive")
	dev, err := Create(t.Context(), uri+"?size=1MiB&regions=4", DeviceOptions{})
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	shared := new(SharedDrives)
	var warnings bytes.Buffer // a device warns if its owner cannot be written
	log := slog.New(slog.NewTextHandler(&warnings, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var wg sync.WaitGroup
	for region := range 4 {
		wg.Go(func() {
			for range 25 {
				d, err := Open(t.Context(), uri+"?slm=1MiB", DeviceOptions{Shared: shared, Region: region, Logger: log,
					Owner: &csd.Owner{Name: "node n", Drive: fmt.Sprint(region)}})
				if assert.NoError(t, err) {
					assert.NoError(t, d.Close())
				}
			}
		})
	}
	wg.Wait()
	assert.Empty(t, warnings.String())
	dev, err = Open(t.Context(), uri, DeviceOptions{})
	require.NoError(t, err)
	require.NoError(t, dev.Close())
}
