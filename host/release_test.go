package host

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
)

// twoRegions makes a drive of two regions in memory that holds a partition, and opens a drive for each region.
func twoRegions(t *testing.T) (drive string, regions []*Drive) {
	t.Helper()
	drive = "mem:" + t.Name()
	dev, err := sdk.Open(t.Context(), drive+"?size=4MiB&slm=64MiB&regions=2", sdk.DeviceOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	vol, err := volume.Open(t.Context(), dev)
	require.NoError(t, err)
	b := numbered(t, 0, 105)
	require.NoError(t, vol.Put(t.Context(), "a.parquet", int64(len(b)), bytes.NewReader(b)))
	for region := range 2 {
		d, err := OpenDrive(t.Context(), fmt.Sprintf("%s?region=%d", drive, region),
			DriveOptions{Name: fmt.Sprint("r", region), Streams: 1})
		require.NoError(t, err)
		regions = append(regions, d)
	}
	return drive, regions
}

// own has another host reserve memory of a region. release gives it back.
func own(t *testing.T, drive string, region int) (release func()) {
	t.Helper()
	dev, err := sdk.Open(t.Context(), fmt.Sprintf("%s?region=%d", drive, region), sdk.DeviceOptions{})
	require.NoError(t, err)
	_, err = dev.ReserveSLM(t.Context(), 4096)
	require.NoError(t, err)
	return func() { require.NoError(t, dev.Close()) }
}

// TestADriveIsGivenUp: not while the job has a stream or a lent mini-batch there. Another host can have the region
// then, and the job takes it again when it is free. The report has all that the job did there.
func TestADriveIsGivenUp(t *testing.T) {
	drive, regions := twoRegions(t)
	m := openManager(t, regions...)
	j, plan := prepare(t, m, dataset.Options{Shuffle: dataset.ShuffleNone})
	split, err := plan.Split(0)
	require.NoError(t, err)
	request := api.SplitRequest{Job: j.Digest, Drive: "r1", Split: split}
	_, err = m.Measure(t.Context(), j.Digest, "r1")
	require.NoError(t, err)
	s, err := m.Open(t.Context(), request)
	require.NoError(t, err)
	mb, err := s.Next(t.Context())
	require.NoError(t, err)
	require.True(t, mb.Lent())
	mb.Retain()
	mb.Release()
	require.ErrorIs(t, m.Release(t.Context(), j.Digest, "r1"), api.ErrBusy, "a stream is open")
	require.NoError(t, s.Close())
	require.ErrorIs(t, m.Release(t.Context(), j.Digest, "r1"), api.ErrBusy, "a mini-batch is lent")
	mb.Release()
	require.NoError(t, m.Release(t.Context(), j.Digest, "r1"))
	require.NoError(t, m.Release(t.Context(), j.Digest, "r1"), "there is nothing to free")

	release := own(t, drive, 1)
	_, err = m.Open(t.Context(), request)
	require.ErrorIs(t, err, api.ErrTaken)
	err = m.Acquire(t.Context(), j.Digest, "r1")
	require.ErrorIs(t, err, api.ErrTaken)
	require.ErrorIs(t, err, sdk.ErrRegionOwned)
	report := func() api.DriveReport {
		list, err := m.Report(t.Context(), j.Digest)
		require.NoError(t, err)
		require.Len(t, list, 2)
		return list[1]
	}
	before := report()
	assert.Equal(t, "r1", before.Name)
	assert.Positive(t, before.Rows)
	assert.Positive(t, before.RowsPerSecond)
	release()
	require.NoError(t, m.Acquire(t.Context(), j.Digest, "r1"))
	require.NoError(t, m.Acquire(t.Context(), j.Digest, "r1"), "the job has it")
	s, err = m.Open(t.Context(), request)
	require.NoError(t, err)
	rows, _ := take(t, s)
	require.Len(t, rows, 105)
	require.NoError(t, s.Close())
	after := report()
	assert.Equal(t, before.Rows+105, after.Rows)
	assert.Equal(t, before.RowsPerSecond, after.RowsPerSecond)
	require.NotNil(t, after.Counters)
	assert.GreaterOrEqual(t, int64(after.Counters.Rows), after.Rows, "the drive's own counters, since P was measured")

	require.ErrorIs(t, m.Release(t.Context(), dataset.Digest{99}, "r1"), api.ErrUnknownJob)
	require.ErrorIs(t, m.Release(t.Context(), j.Digest, "r2"), api.ErrUnknownDrive)
}

// TestAnElasticJobIsPrepared where others have some of the drives; any other job wants all, and no job does without
// any.
func TestAnElasticJobIsPrepared(t *testing.T) {
	drive, regions := twoRegions(t)
	m := openManager(t, regions...)
	release := own(t, drive, 1)
	j, plan := describeJob(t, m, dataset.Options{Shuffle: dataset.ShuffleNone})
	require.ErrorIs(t, m.Prepare(t.Context(), j), api.ErrTaken)
	j.Elastic = true
	require.NoError(t, m.Prepare(t.Context(), j))
	split, err := plan.Split(0)
	require.NoError(t, err)
	s, err := m.Open(t.Context(), api.SplitRequest{Job: j.Digest, Drive: "r0", Split: split})
	require.NoError(t, err)
	rows, _ := take(t, s)
	require.Len(t, rows, 105)
	require.NoError(t, s.Close())
	require.NoError(t, m.Finish(t.Context(), j.Digest))

	releaseFirst := own(t, drive, 0)
	require.ErrorIs(t, m.Prepare(t.Context(), j), api.ErrTaken)
	release()
	require.NoError(t, m.Prepare(t.Context(), j))
	releaseFirst()
}
