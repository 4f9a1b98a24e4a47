package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/autoscale"
)

// elasticJob is a job over the regions of a drive, whose trainer is as slow as the test says. It checks every
// mini-batch.
type elasticJob struct {
	t    *testing.T
	job  *trainmgr.Job
	want map[uint64]uint32 // the sum of each mini-batch of epoch 0
	got  map[tensor.Name]bool
}

// report is how the number of regions has followed the trainer so far.
func (e *elasticJob) report() *trainmgr.AutoscaleReport {
	r, err := e.job.Report(context.Background())
	require.NoError(e.t, err)
	return r.Autoscale
}

// take checks a mini-batch: it comes once in its epoch, with the bytes that it has on one drive.
func (e *elasticJob) take(mb *tensor.MiniBatch) {
	require.False(e.t, e.got[mb.Name], "%v came twice", mb.Name)
	e.got[mb.Name] = true
	require.Equal(e.t, e.want[mb.Name.Number], sum(mb), "%v", mb.Name)
}

// regionsOf makes a drive of four regions that holds a data set, and returns it and its regions' URIs.
func regionsOf(t *testing.T, d *dataSet, set sdk.Commands) (*sdk.Device, []string) {
	t.Helper()
	drive := fmt.Sprintf("mem:%s-%s", t.Name(), set)
	dev, err := sdk.Open(context.Background(), drive+"?size=8MiB&slm=128MiB&regions=4", sdk.DeviceOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	d.put(t, dev, 0, 1, 2, 3)
	var regions []string
	for region := range 4 {
		regions = append(regions, fmt.Sprintf("%s?region=%d&commands=%s", drive, region, set))
	}
	return dev, regions
}

// TestTheAutoscalerTakesRegions: a job takes regions of a drive while its trainer starves, and gives them up while its
// trainer is slow. Another host then has a region, which the job does without until it is free again. No mini-batch is
// lost or comes twice, and all have the bytes that they have on one drive, in both orders and with both command sets.
func TestTheAutoscalerTakesRegions(t *testing.T) {
	for _, c := range []struct {
		set   sdk.Commands
		order dataset.Order
	}{{sdk.Vendor, dataset.Fastest}, {sdk.Standard, dataset.Deterministic}} {
		t.Run(string(c.set), func(t *testing.T) { testElasticRegions(t, c.set, c.order) })
	}
}

func testElasticRegions(t *testing.T, set sdk.Commands, order dataset.Order) {
	d := newDataSet(t, 200, 1<<10, 3000, 3500, 4000, 4500)
	o := trainmgr.Options{Pipeline: pipelineOf(t, "lists"), Shuffle: dataset.ShuffleNone, SplitBatches: 1,
		Order: order}
	fixed := o
	fixed.AllDrives = true
	e := &elasticJob{t: t, want: map[uint64]uint32{}, got: map[tensor.Name]bool{}}
	for name, sum := range run(t, Config{Drives: d.memory(t, [][]int{{0, 1, 2, 3}}, "")}, fixed, nil).sums {
		e.want[name.Number] = sum
	}
	require.Len(t, e.want, 60+70+80+90)

	dev, regions := regionsOf(t, d, set)
	m, err := Open(t.Context(), Config{Drives: regions, DriveOptions: host.DriveOptions{Streams: 1},
		Manager: host.Options{MeasureTime: 10 * time.Millisecond}})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	o.Epochs, o.QueueBytes = 1_000_000, 64<<10
	o.RowsPerSecond = 1 // T/P is one region, until the trainer is seen
	o.Autoscale.Every = 5 * time.Millisecond
	e.job, err = trainmgr.Submit(t.Context(), m, o)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.job.Close()) }()
	require.Equal(t, 1, e.job.Allocation().Drives)

	var other *sdk.SLM // a region that another host has
	phase, epoch := 0, uint64(0)
	for mb, err := range e.job.MiniBatches(t.Context()) {
		require.NoError(t, err)
		e.take(mb)
		r := e.report()
		switch {
		case phase == 0 && r.Drives == 4: // the trainer takes all at once, and starves
			phase++
		case phase == 1: // it is slow
			time.Sleep(20 * time.Millisecond)
			if r.Drives < 4 && r.Given > 0 {
				if other = takeRegion(t, dev, regions); other != nil {
					phase++
				}
			}
		case phase == 2 && r.Refused > 0: // it is fast, and others have a region
			require.NoError(t, other.Release(t.Context()))
			phase++
		case phase == 3 && r.Drives == 4:
			phase, epoch = 4, mb.Name.Epoch
		}
		if phase == 4 && mb.Name.Epoch > epoch+1 { // whole epochs with all regions
			break
		}
	}
	require.Equal(t, 4, phase, "%+v", e.report())
	for name := range e.got {
		if name.Epoch <= epoch {
			for number := range uint64(len(e.want)) {
				name.Number = number
				require.True(t, e.got[name], "%v did not come", name)
			}
		}
	}
	r, err := e.job.Report(t.Context())
	require.NoError(t, err)
	assert.Len(t, r.PerDrive, 4)
	assert.GreaterOrEqual(t, r.Autoscale.Changes, 2)
	assert.Equal(t, 4, r.Autoscale.Most)
}

// takeRegion reserves memory in a region that nobody has; nil if every region is taken.
func takeRegion(t *testing.T, dev *sdk.Device, regions []string) *sdk.SLM {
	t.Helper()
	for _, uri := range regions {
		host, err := sdk.Open(t.Context(), uri, sdk.DeviceOptions{})
		require.NoError(t, err)
		held, err := host.ReserveSLM(t.Context(), host.Compute().SLMSize())
		if err == nil {
			t.Cleanup(func() { assert.NoError(t, host.Close()) })
			return held
		}
		require.ErrorIs(t, err, sdk.ErrRegionOwned)
		require.NoError(t, host.Close())
	}
	return nil
}

// TestTheAutoscalerIsOnTheModelsClock: with drives of a modelled timing, decisions follow each other in the model's
// time, in which the whole job takes a few milliseconds, and the number of drives follows the trainer.
func TestTheAutoscalerIsOnTheModelsClock(t *testing.T) {
	const drives, every = 6, 100 * time.Microsecond
	file := plainFile(t, 64*timedBatch)
	var files []string
	for d := range drives {
		files = append(files, filepath.Join(filepath.Dir(file), fmt.Sprintf("part-%d.parquet", d)))
		require.NoError(t, os.Link(file, files[d]))
	}
	pacing := timing.NewPacing(timing.ModeSmartSSD, 1000)
	now := pacing.Clock().Now
	c := Config{Files: source.ParseLocations(files...), Spread: drives,
		DriveOptions: host.DriveOptions{Engine: host.EngineDrive, Threads: 1},
		Manager:      host.Options{MeasureTime: every, Now: now}}
	c.Device.Timing = pacing
	m, err := Open(t.Context(), c)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	var log []autoscale.Record
	job, err := trainmgr.Submit(t.Context(), m, trainmgr.Options{Pipeline: plainPipeline(t), Epochs: 1000,
		QueueBytes: 1 << 20, RowsPerSecond: 1, Now: now,
		Autoscale: trainmgr.Autoscale{Every: every, Record: func(r autoscale.Record) { log = append(log, r) }}})
	require.NoError(t, err)
	defer func() { require.NoError(t, job.Close()) }()
	require.Equal(t, 1, job.Allocation().Drives)
	for _, err := range job.MiniBatches(t.Context()) {
		require.NoError(t, err)
		r, err := job.Report(t.Context())
		require.NoError(t, err)
		if r.Autoscale.Drives == drives {
			break
		}
	}
	require.NoError(t, pacing.Err())
	r, err := job.Report(t.Context())
	require.NoError(t, err)
	assert.Equal(t, drives, r.Autoscale.Most)
	assert.Less(t, r.ElapsedSeconds, 1.0, "1000 seconds of this machine")
	for i, d := range log[1:] {
		require.GreaterOrEqual(t, d.Inputs.Seconds-log[i].Inputs.Seconds, 0.999*every.Seconds())
	}
	// Of this machine's time it would be a thousandth: a few hundred to a few thousand rows a second.
	assert.Greater(t, log[len(log)-1].Decision.After.T, 1e5, "T as it was observed, of the model's time")
}
