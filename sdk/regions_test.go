package sdk_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
)

// TestHostsInRegionsAtOnce has a host in each of four regions preprocess the same partition with either command set,
// while the image of a fifth region is switched all the time. Every mini-batch is the reference's.
func TestHostsInRegionsAtOnce(t *testing.T) {
	const regions, share = 5, 4 << 20
	data := processortest.WriteParquet(t, processortest.Layout{Rows: 1500, Group: 700, Page: 2 << 10, Codec: &pq.Snappy,
		Seed: 43})
	uri, at := served(t, csd.Options{Regions: regions, SLMBytes: regions * share}, tcp.TargetOptions{}, data)
	var hosts sync.WaitGroup
	for region := range regions - 1 {
		set := []sdk.Commands{sdk.Vendor, sdk.Standard}[region%2]
		dev, err := sdk.Open(t.Context(), fmt.Sprintf("%s?commands=%s&region=%d", uri, set, region), sdk.DeviceOptions{})
		require.NoError(t, err)
		defer func() { require.NoError(t, dev.Close()) }()
		assert.Equal(t, region, dev.Info().Region)
		assert.Equal(t, regions, dev.Info().Regions)
		assert.Equal(t, 2, dev.Compute().Threads())
		require.EqualValues(t, share, dev.Compute().SLMSize(), "the share of the region")
		prog, schema := processortest.Programs()["jagged"]()
		run := processor.Run{First: 5, Rows: 1400, Batch: 128, Partition: processortest.Open(t, data, true)}
		want := processortest.Reference(t, prog, schema, run)
		run.Partition = readFrom(t, dev, data, at[0])
		p := startOn(t, dev, prog, schema, processor.Options{SLM: share})
		defer func() { require.NoError(t, p.Close()) }()
		hosts.Go(func() {
			got, err := processortest.Collect(p, run)
			if assert.NoError(t, err) {
				processortest.RequireSame(t, want, got, "region ", region)
			}
		})
	}
	last, err := sdk.Open(t.Context(), uri, sdk.DeviceOptions{Region: regions - 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, last.Close()) }()
	b, err := stock.Named("passthrough")
	require.NoError(t, err)
	slot, _, err := last.PlaceImage(t.Context(), b)
	require.NoError(t, err)
	for n := range 20 {
		require.NoError(t, last.ActivateImage(t.Context(), slot*((n+1)%2)))
	}
	hosts.Wait()

	other, err := sdk.Open(t.Context(), uri+"?region=1", sdk.DeviceOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	_, err = other.ReserveSLM(t.Context(), 4096)
	require.ErrorIs(t, err, sdk.ErrRegionOwned)
}

// TestTheImageOfARegion is changed and rolled back with either command set, in the device's region only.
func TestTheImageOfARegion(t *testing.T) {
	b, err := stock.Named("passthrough")
	require.NoError(t, err)
	for _, set := range []sdk.Commands{sdk.Vendor, sdk.Standard} {
		path := "file:" + filepath.Join(t.TempDir(), "drive") + "?slm=1MiB&region=1&commands=" + string(set)
		dev, err := sdk.Create(t.Context(), path+"&size=1MiB&regions=2", sdk.DeviceOptions{})
		require.NoError(t, err)
		slot, _, err := dev.PlaceImage(t.Context(), b)
		require.NoError(t, err)
		held, err := dev.ReserveSLM(t.Context(), 4096)
		require.NoError(t, err)
		require.NoError(t, dev.ActivateImage(t.Context(), slot), "the owner may, over memory that it holds")
		require.NoError(t, held.Release(t.Context()))
		r, err := dev.ImageLog(t.Context())
		require.NoError(t, err)
		active, ok := r.Active()
		require.True(t, ok)
		assert.Equal(t, slot, active.Slot)
		first, ok := r.In(0).Active()
		require.True(t, ok)
		assert.Equal(t, 0, first.Slot, "region 0 has its own image still")
		require.NoError(t, dev.Close())

		dev, err = sdk.Open(t.Context(), path, sdk.DeviceOptions{})
		require.NoError(t, err)
		require.Equal(t, 2, dev.Info().Regions, "the drive keeps them")
		require.True(t, dev.Info().Programs[slot].Active, "the program list is the region's")
		require.False(t, dev.Info().Programs[0].Active)
		to, err := dev.RollbackImage(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 0, to.Slot)
		require.NoError(t, dev.Close())
	}
}

func TestRegionsThatADriveHasNot(t *testing.T) {
	for _, uri := range []string{"mem:?slm=1MiB&region=1", "mem:?slm=1MiB&regions=3&region=3"} {
		_, err := sdk.Open(t.Context(), uri, sdk.DeviceOptions{})
		require.ErrorIs(t, err, sdk.ErrRegion, uri)
	}
	_, err := sdk.Open(t.Context(), "mem:?region=1", sdk.DeviceOptions{Plain: true})
	require.ErrorIs(t, err, sdk.ErrNoCompute)
	dev, err := sdk.Open(t.Context(), "mem:?slm=1MiB&size=0&regions=3&region=2", sdk.DeviceOptions{})
	require.NoError(t, err)
	assert.Equal(t, 3, dev.Info().Regions)
	require.NoError(t, dev.Close())
}
