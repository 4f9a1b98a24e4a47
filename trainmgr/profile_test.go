package trainmgr

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/metricfile"
	"github.com/millrace/millrace/trainmgr/offload"
)

// profiledOptions are a job whose trainer is profiled over few mini-batches.
func profiledOptions(local *fakeStorage, step Step) Options {
	o := sharedOptions(local, dataset.Fastest, -1)
	o.RowsPerSecond, o.Ranks = 0, []Step{step}
	o.Offload.ProfileSteps, o.Offload.ProfileTime = 5, time.Nanosecond
	return o
}

// TestAShortJobIsNotProfiled leaves the profile out where the job takes less than five times as long, and reports that:
// the trainer runs two steps, and the decision is from T and P.
func TestAShortJobIsNotProfiled(t *testing.T) {
	const rows = 1_000_000
	m, err := dataset.NewManifest([]dataset.Partition{{Name: "p", Bytes: 1, Rows: rows, RowGroups: []int64{rows}}})
	require.NoError(t, err)
	plan, err := dataset.NewPlan(m, dataset.Options{Batch: 1000})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		t      float64
		epochs int
		short  bool
	}{
		"30 s beside five measurements of 1.25 s": {1e5, 3, true},
		"40 s beside five measurements of 1.25 s": {1e5, 4, false},
		"100 s beside five measurements of 5 s":   {1e4, 1, true},
		"200 s beside five measurements of 5 s":   {1e4, 2, false},
	} {
		s := &storageSource{options: Options{Epochs: c.epochs}, data: &api.Dataset{Manifest: m},
			firstEpoch:   &Epoch{Plan: plan},
			splitSharing: &splitSharing{localSupply: 1e5, sides: []remoteSide{{cut: offload.All, supply: 1e5}}}}
		metrics, err := s.withoutProfile(t.Context(), c.t)
		require.NoError(t, err)
		assert.Equal(t, c.short, metrics != nil, name)
		assert.Equal(t, c.short, s.splitSharing.profileLeftOut, name)
	}

	local, remote := newFake(t, 1005, []int{0, 1}), newFake(t, 1005, []int{0}, []int{1})
	steps := 0
	o := profiledOptions(local, Step{Run: func(context.Context, *tensor.MiniBatch) error { steps++; return nil }})
	o.Offload.ProfileSteps, o.Offload.ProfileTime = 0, 0
	j, err := Submit(t.Context(), remote, o)
	require.NoError(t, err)
	assert.Equal(t, 2, steps)
	r, err := j.Report(t.Context())
	require.NoError(t, err)
	assert.True(t, r.Offload.ProfileLeftOut)
	require.NotNil(t, r.Offload.Metrics)
	assert.NotEmpty(t, r.Offload.Metrics.Candidates)
	require.NoError(t, j.Close())
}

// TestProfileChangesNothing profiles a model that the step trains: the weights are as before, the job begins at its
// first mini-batch, no stream and no mini-batch is left open, and the report holds the measurements.
func TestProfileChangesNothing(t *testing.T) {
	local, remote := newFake(t, 1005, []int{0, 1}), newFake(t, 1005, []int{0}, []int{1})
	// The trainer stalls, even if others have the processor while its five steps are timed.
	local.delay = 20 * time.Millisecond
	weights, trained, restored := 1.0, 0, 0
	step := Step{
		Run: func(_ context.Context, mb *tensor.MiniBatch) error {
			weights *= 1 + float64(mb.Label[0])/2 + 1e-3
			trained++
			return nil
		},
		Snapshot: func() (func() error, error) {
			kept := weights
			return func() error { weights = kept; restored++; return nil }, nil
		},
	}
	j, err := Submit(t.Context(), remote, profiledOptions(local, step))
	require.NoError(t, err)
	assert.InDelta(t, 1.0, weights, 0)
	assert.Equal(t, 1, restored)
	assert.GreaterOrEqual(t, trained, 3*5)
	assert.Zero(t, j.Checkpoint().Mark)
	for _, f := range []*fakeStorage{local, remote} {
		assert.Zero(t, f.running.Load(), "streams not closed")
		assert.Zero(t, f.alive.Load(), "mini-batches not released")
	}
	r, err := j.Report(t.Context())
	require.NoError(t, err)
	m := r.Offload.Metrics
	assert.Greater(t, m.Gthp, m.Lthp)
	assert.Positive(t, m.Supply)
	assert.Positive(t, m.Cores)
	require.Len(t, m.Candidates, 1)
	assert.Greater(t, m.Candidates[0].Rthp, m.Lthp)
	assert.Equal(t, offload.ReadAndTransforms, m.Candidates[0].Cut)
	assert.True(t, r.Offload.Decision.Offload)
	assert.InDelta(t, m.Gthp, j.Allocation().RowsPerSecond, 0)
	assert.Positive(t, r.Offload.ProfileSeconds)
	assert.InDelta(t, 1, r.Offload.ProfileShare, 0, "nothing has run yet")
	rows, _ := take(t, j, -1)
	checkRows(t, local, 1005, rows)
	r, err = j.Report(t.Context())
	require.NoError(t, err)
	assert.Less(t, r.Offload.ProfileShare, 1.0)
	require.NoError(t, j.Close())
}

// TestWithoutAStallTheWorkersAreNotProfiled checks FastFlow 7.4: "Workloads with low prep stalls (...) also have little
// overheads as FastFlow prevents measuring other metrics after a short profiling of Lthp and Gthp".
func TestWithoutAStallTheWorkersAreNotProfiled(t *testing.T) {
	local, remote := newFake(t, 1005, []int{0, 1}), newFake(t, 1005, []int{0, 1})
	o := profiledOptions(local, Step{Run: func(ctx context.Context, mb *tensor.MiniBatch) error {
		time.Sleep(time.Millisecond)
		return nil
	}})
	o.RowsPerSecond = 1 // T is known, and the local side makes more
	j, err := Submit(t.Context(), remote, o)
	require.NoError(t, err)
	assert.Zero(t, remote.opened.Load())
	rows, _ := take(t, j, -1)
	checkRows(t, local, 1005, rows)
	r, err := j.Report(t.Context())
	require.NoError(t, err)
	assert.Empty(t, r.Offload.Metrics.Candidates)
	assert.False(t, r.Offload.Decision.Offload)
	require.NoError(t, j.Close())
}

// TestStoredMetricsAreNotMeasured checks FastFlow 5.2: "FastFlow further reduces the profiling overhead by storing
// metrics and reloading them if the same input pipeline and model are trained again".
func TestStoredMetricsAreNotMeasured(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache", "metrics.json")
	store, err := metricfile.New(path)
	require.NoError(t, err)
	var steps atomic.Int64
	step := Step{Run: func(context.Context, *tensor.MiniBatch) error { steps.Add(1); return nil }}
	submit := func(change func(o *Options)) *OffloadReport {
		t.Helper()
		local, remote := newFake(t, 1005, []int{0, 1}), newFake(t, 1005, []int{0, 1})
		local.delay = time.Millisecond
		o := profiledOptions(local, step)
		// T is given, so that the trainer stalls: five steps, timed while others have the processor, may be slow.
		o.RowsPerSecond = 1e9
		o.Offload.Store, o.Offload.Model = store, "regression"
		change(&o)
		steps.Store(0)
		j, err := Submit(t.Context(), remote, o)
		require.NoError(t, err)
		r, err := j.Report(t.Context())
		require.NoError(t, err)
		require.NoError(t, j.Close())
		return r.Offload
	}
	same := func(*Options) {}
	first := submit(same)
	assert.Equal(t, offload.Known{}, first.Known)
	second := submit(same)
	assert.True(t, second.Known.All())
	assert.Zero(t, steps.Load())
	assert.Equal(t, first.Metrics, second.Metrics)
	assert.Equal(t, first.Decision, second.Decision)
	// Only the measurements whose key differs are made again.
	all := submit(func(o *Options) { o.Offload.Cut = offload.All })
	assert.Equal(t, offload.Known{Model: true, Pipeline: true}, all.Known)
	assert.Positive(t, steps.Load())
	pipeline := submit(func(o *Options) {
		o.Pipeline = spec()
		o.Pipeline.Sparse[0].Ops = o.Pipeline.Sparse[0].Ops[:1]
	})
	assert.Equal(t, offload.Known{Model: true}, pipeline.Known)
	assert.Equal(t, offload.Known{}, submit(func(o *Options) { o.Batch = 20 }).Known)
	assert.Equal(t, offload.Known{}, submit(func(o *Options) { o.Offload.Model = "forest" }).Known)
	assert.Equal(t, offload.Known{}, submit(func(o *Options) { o.Offload.Model = "" }).Known, "nothing names the model")
	assert.True(t, submit(same).Known.All(), "the others took nothing away")
	// A damaged file is measured again and replaced.
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, _, err = store.Lookup(offload.Keys{})
	require.ErrorIs(t, err, offload.ErrTable)
	assert.Equal(t, offload.Known{}, submit(same).Known)
	assert.True(t, submit(same).Known.All())
	aside, err := os.ReadFile(path + ".damaged")
	require.NoError(t, err)
	assert.Equal(t, "{", string(aside), "nothing is lost")
	info, err := os.Stat(path)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		assert.Equal(t, os.FileMode(0o600), info.Mode())
	}
}

// TestProfileThatFails lets the step, the snapshot, its restoring, and each side fail during the profile: Submit
// returns the error, but where only the drives fail, everything is local.
func TestProfileThatFails(t *testing.T) {
	broken := errors.New("out of memory")
	good := Step{Run: func(context.Context, *tensor.MiniBatch) error { return nil }}
	fresh := func() (*fakeStorage, *fakeStorage) {
		local, remote := newFake(t, 1005, []int{0, 1}), newFake(t, 1005, []int{0, 1})
		local.delay = time.Millisecond
		return local, remote
	}
	for name, step := range map[string]Step{
		"step":     {Run: func(context.Context, *tensor.MiniBatch) error { return broken }},
		"snapshot": {Run: good.Run, Snapshot: func() (func() error, error) { return nil, broken }},
		"restore":  {Run: good.Run, Snapshot: func() (func() error, error) { return func() error { return broken }, nil }},
	} {
		local, remote := fresh()
		_, err := Submit(t.Context(), remote, profiledOptions(local, step))
		require.ErrorIs(t, err, broken, name)
		assert.Zero(t, local.running.Load()+remote.running.Load()+local.alive.Load(), name)
		assert.Equal(t, 1, local.finished, name)
		assert.Equal(t, 1, remote.finished, name)
	}
	local, remote := fresh()
	local.failAt = map[uint64]error{2: broken}
	_, err := Submit(t.Context(), remote, profiledOptions(local, good))
	require.ErrorIs(t, err, broken)

	local, remote = fresh()
	remote.failAt = map[uint64]error{2: errGone}
	j, err := Submit(t.Context(), remote, profiledOptions(local, good))
	require.NoError(t, err, "without the drives everything is local")
	rows, _ := take(t, j, -1)
	checkRows(t, local, 1005, rows)
	require.NoError(t, j.Close())
	_, err = Submit(t.Context(), remote, Options{Pipeline: spec(), Offload: Offload{Local: local, ProfileSteps: -1}})
	require.ErrorIs(t, err, ErrOptions)
	_, err = Submit(t.Context(), remote, Options{Pipeline: spec(), Offload: Offload{Local: local, ProfileTime: -1}})
	require.ErrorIs(t, err, ErrOptions)
}

// TestAProfileStepsOnWholeMiniBatches profiles a job all of whose mini-batches have rows of several splits, which other
// drives may hold: each step of the trainer is on as many rows as in the job, and each pass has the rows of its splits.
func TestAProfileStepsOnWholeMiniBatches(t *testing.T) {
	local, remote := newFake(t, 7, everyPartition(60)), newFake(t, 7, everyPartition(60))
	rows := map[int64]int{}
	o := profiledOptions(local, Step{Run: func(_ context.Context, mb *tensor.MiniBatch) error {
		assert.Equal(t, 10, mb.Rows)
		assert.Zero(t, mb.Fragment)
		for _, row := range mb.Values64 {
			rows[row]++
		}
		return mb.Validate()
	}})
	o.Boundary, o.Epochs = dataset.BoundaryNone, 1000
	j, err := Submit(t.Context(), remote, o)
	require.NoError(t, err)
	r, err := j.Report(t.Context())
	require.NoError(t, err)
	assert.False(t, r.Offload.ProfileLeftOut)
	assert.Greater(t, len(rows), 100, "steps on the rows of the data")
	require.NoError(t, j.Close())
	assert.Zero(t, local.alive.Load()+remote.alive.Load())
}

// everyPartition returns the partitions of a drive that holds n of them.
func everyPartition(n int) (partitions []int) {
	for p := range n {
		partitions = append(partitions, p)
	}
	return partitions
}
