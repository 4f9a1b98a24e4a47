package local

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
)

// TestDrivesThatComeLater begins a job whose drive's file is not there yet. The trainer's own CPUs make the
// mini-batches until the drive is there; then the drive makes its share.
func TestDrivesThatComeLater(t *testing.T) {
	d := newDataSet(t, 170, 1000, 2000, 2000)
	own, err := Open(t.Context(), Config{Files: source.ParseLocations(d.files(t)...),
		DriveOptions: host.DriveOptions{Engine: host.EngineCPU}})
	require.NoError(t, err)
	defer func() { require.NoError(t, own.Close()) }()
	ready := d.onFiles(t, [][]int{{0, 1}}, 512, "")[0][len("file:"):]
	hidden := filepath.Join(t.TempDir(), "d0.flash")
	drives := NewElsewhere(Config{Drives: []string{"file:" + hidden}})
	ratio := 0.75
	o := trainmgr.Options{Pipeline: pipelineOf(t, "lists"), SplitBatches: 1, AllDrives: true, Epochs: 20, QueueBytes: 1,
		Offload: trainmgr.Offload{Local: own, Ratio: &ratio, RetryAfter: time.Millisecond}}
	job, err := trainmgr.Submit(t.Context(), drives, o)
	require.NoError(t, err)
	_, err = drives.Open(t.Context(), api.SplitRequest{})
	require.ErrorIs(t, err, ErrNotThere)
	seen := map[tensor.Name]bool{}
	for mb, err := range job.MiniBatches(t.Context()) {
		require.NoError(t, err)
		require.False(t, seen[mb.Name])
		seen[mb.Name] = true
		if len(seen) == 5 {
			for _, suffix := range []string{".json", ""} {
				require.NoError(t, os.Rename(ready+suffix, hidden+suffix))
			}
		}
		if len(seen) > 5 && len(seen) < 800 && len(seen)%10 == 0 {
			time.Sleep(time.Millisecond) // the drive is looked for now and then
		}
	}
	assert.Len(t, seen, 20*80)
	r, err := job.Report(t.Context())
	require.NoError(t, err)
	assert.Positive(t, r.Offload.RemoteRows)
	assert.Positive(t, r.Offload.LocalRows)
	require.NoError(t, job.Close())
	require.NoError(t, drives.Close())
	_, err = drives.Dataset(t.Context())
	require.ErrorIs(t, err, ErrNotThere)
}
