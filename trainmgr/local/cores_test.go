package local

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
)

func TestFilesGetTheCoresThatTheTrainerLeaves(t *testing.T) {
	for _, c := range []struct {
		name                                        string
		cores, trainer, spread, threads, wantEngine int
	}{
		{"one core", 1, 0, 1, 0, 1},
		{"one core is the trainer's", 16, 0, 1, 0, 15},
		{"four cores are the trainer's", 16, 4, 1, 0, 12},
		{"no trainer", 16, -1, 1, 0, 16},
		{"four drives share", 16, -1, 4, 0, 4},
		{"four drives share what is left", 16, 0, 4, 0, 3},
		{"more drives than cores", 2, 0, 4, 0, 1},
		{"a trainer of more cores than there are", 2, 8, 1, 0, 1},
		{"as asked", 2, 0, 1, 7, 7},
		{"a very large machine", 1024, 0, 1, 0, sdk.MaxThreads},
	} {
		config := Config{Spread: c.spread, TrainerCores: c.trainer, DriveOptions: host.DriveOptions{Threads: c.threads}}
		assert.Equal(t, c.wantEngine, config.EngineThreads(c.cores), c.name)
	}
}

// TestEveryCoreGetsASplitAndTheBytesAreTheSame checks the defaults of a drive made of files: an engine thread for every
// core of the machine, one stream more than threads, and the memory that these streams need. The mini-batches are the
// same as with one thread.
func TestEveryCoreGetsASplitAndTheBytesAreTheSame(t *testing.T) {
	d := newDataSet(t, 170, 1000, 400, 400, 400, 400, 300)
	options := trainmgr.Options{Pipeline: pipelineOf(t, "lists"), Order: dataset.Deterministic, SplitBatches: 2,
		AllDrives: true}
	var one map[tensor.Name]uint32
	for _, c := range []struct {
		threads, wantThreads, wantStreams int
	}{{1, 1, 2}, {0, max(runtime.GOMAXPROCS(0)-1, 1), max(runtime.GOMAXPROCS(0), 2)}, {9, 9, 10}} {
		config := Config{Files: source.ParseLocations(d.files(t)...), DriveOptions: host.DriveOptions{Threads: c.threads}}
		m, err := Open(t.Context(), config)
		require.NoError(t, err)
		data, err := m.Dataset(t.Context())
		require.NoError(t, err)
		assert.Equal(t, c.wantThreads, data.Drives[0].Threads)
		assert.Equal(t, c.wantStreams, data.Drives[0].Streams)
		got := runOn(t, m, options, nil)
		if one == nil {
			one = got.sums
		}
		assert.Equal(t, one, got.sums)
		require.NoError(t, m.Close())
	}
}
