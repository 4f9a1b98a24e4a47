package local

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr"
)

// TestAJobOverRegionsOfOneDrive: each region is a drive to the job, with the same partitions, and the mini-batches are
// those of a drive with one region.
func TestAJobOverRegionsOfOneDrive(t *testing.T) {
	d := newDataSet(t, 200, 1<<10, 900, 700, 800)
	o := trainmgr.Options{Pipeline: pipelineOf(t, "lists"), Shuffle: dataset.ShuffleNone, SplitBatches: 1,
		AllDrives: true}
	want := run(t, Config{Drives: d.memory(t, [][]int{{0, 1, 2}}, "")}, o, nil)
	require.NotEmpty(t, want.sums)
	for _, set := range []sdk.Commands{sdk.Vendor, sdk.Standard} {
		drive := fmt.Sprintf("mem:%s-%s", t.Name(), set)
		dev, err := sdk.Open(context.Background(), drive+"?size=8MiB&slm=96MiB&regions=3", sdk.DeviceOptions{})
		require.NoError(t, err)
		d.put(t, dev, 0, 1, 2)
		var regions []string
		for region := range 3 {
			regions = append(regions, fmt.Sprintf("%s?region=%d&commands=%s", drive, region, set))
		}
		got := run(t, Config{Drives: regions, DriveOptions: host.DriveOptions{Streams: 1}}, o, nil)
		assert.Equal(t, want.sums, got.sums, set)
		made := map[string]int64{}
		for _, r := range got.report.PerDrive {
			made[r.Name] = r.MiniBatches
		}
		assert.Len(t, made, 3, "each region is a drive of the report")
		for _, region := range regions {
			assert.Positive(t, made[region], "%s: it made none of %d mini-batches", region, len(got.sums))
		}
		require.NoError(t, dev.Close())
	}
}
