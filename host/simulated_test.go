package host

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/dataset"
)

// TestSimulatedEngine checks that the engine rtl takes its processors from the option Simulate, one stream at a time,
// and that it wants that option.
func TestSimulatedEngine(t *testing.T) {
	_, err := ParseEngine("rtl")
	require.ErrorContains(t, err, "want reference, cpu or drive")
	paths := write(t, map[string][]byte{"a.parquet": numbered(t, 0, 35)})
	_, err = OpenFiles(t.Context(), source.ParseLocations(paths...), DriveOptions{Engine: EngineRTL})
	require.ErrorContains(t, err, "the engine rtl wants a simulation of its units")
	_, err = OpenFiles(t.Context(), source.ParseLocations(paths...),
		DriveOptions{Engine: EngineRTL, Simulate: cpu.NewReference, Accelerator: "mem:?size=0&slm=8MiB"})
	require.ErrorIs(t, err, ErrAccelerator)

	d := files(t, paths, DriveOptions{Engine: EngineRTL, Simulate: cpu.NewReference, Threads: 4})
	require.Equal(t, 1, d.streams())
	require.False(t, d.Computes())
	m := openManager(t, d)
	j, plan := prepare(t, m, dataset.Options{Shuffle: dataset.ShuffleNone, SplitBatches: 4})
	split, err := plan.Split(0)
	require.NoError(t, err)
	s, err := m.Open(t.Context(), api.SplitRequest{Job: j.Digest, Drive: "files", Split: split})
	require.NoError(t, err)
	rows, _ := take(t, s)
	require.Len(t, rows, 35)
	require.NoError(t, s.Close())
}
