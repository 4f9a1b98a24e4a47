package trainmgr

import (
	"context"
	"log/slog"
	"path/filepath"
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

// TestTheJobChoosesItsCutFromRates has two storages elsewhere, a cut each, and no step to profile. The one that makes
// more is used, whichever it is; every row comes once, and both forget the job.
func TestTheJobChoosesItsCutFromRates(t *testing.T) {
	for name, c := range map[string]struct {
		first, also float64 // P of a drive
		cut         offload.Cut
	}{
		"the further storage": {200, 900, offload.Transforms},
		"the first storage":   {900, 200, offload.ReadAndTransforms},
	} {
		t.Run(name, func(t *testing.T) {
			local := newFake(t, 1005, []int{0, 1})
			first, also := newFake(t, 1005, []int{0}, []int{1}), newFake(t, 1005, []int{0, 1})
			local.p, first.p, also.p = 100, c.first, c.also
			o := sharedOptions(local, dataset.Fastest, -1)
			o.RowsPerSecond, o.Offload.Also = 3000, []RemoteStorage{{also, offload.Transforms}}
			j, err := Submit(t.Context(), first, o)
			require.NoError(t, err)
			used, unused := first, also
			want := map[string]float64{"trainer/drive0": 100, "drive0": c.first, "drive1": c.first}
			if c.cut == offload.Transforms {
				used, unused = also, first
				want = map[string]float64{"trainer/drive0": 100, "drive0": c.also}
			}
			assert.Equal(t, want, j.Allocation().P)
			rows, _ := take(t, j, -1)
			checkRows(t, local, 1005, rows)
			r, err := j.Report(t.Context())
			require.NoError(t, err)
			assert.Equal(t, c.cut, r.Offload.Decision.Cut)
			assert.Len(t, r.Offload.Metrics.Candidates, 2)
			assert.Positive(t, r.Offload.RemoteRows)
			assert.Zero(t, unused.opened.Load())
			assert.Positive(t, used.opened.Load())
			require.NoError(t, j.Close())
			assert.Equal(t, []int{1, 1, 1}, []int{local.finished, first.finished, also.finished})
		})
	}
}

// TestTheJobChoosesItsCutByAProfile profiles both storages. The metrics are kept: the next job measures nothing and
// chooses the same. A job that has a storage less is another one.
func TestTheJobChoosesItsCutByAProfile(t *testing.T) {
	local := newFake(t, 1005, []int{0, 1})
	first, also := newFake(t, 1005, []int{0, 1}), newFake(t, 1005, []int{0, 1})
	local.delay, first.delay, also.delay = 60*time.Millisecond, 60*time.Millisecond, time.Millisecond
	store, err := metricfile.New(filepath.Join(t.TempDir(), "metrics.json"))
	require.NoError(t, err)
	job := func(further ...RemoteStorage) *OffloadReport {
		o := profiledOptions(local, Step{Run: func(context.Context, *tensor.MiniBatch) error { return nil }})
		o.Offload.Also, o.Offload.Store, o.Offload.Model = further, store, "model"
		j, err := Submit(t.Context(), first, o)
		require.NoError(t, err)
		rows, _ := take(t, j, -1)
		checkRows(t, local, 1005, rows)
		r, err := j.Report(t.Context())
		require.NoError(t, err)
		require.NoError(t, j.Close())
		return r.Offload
	}
	both := job(RemoteStorage{also, offload.Transforms})
	require.Len(t, both.Metrics.Candidates, 2)
	assert.Greater(t, both.Metrics.Candidates[1].Rthp, both.Metrics.Candidates[0].Rthp)
	assert.Equal(t, offload.Transforms, both.Decision.Cut)
	again := job(RemoteStorage{also, offload.Transforms})
	assert.True(t, again.Known.All())
	assert.Equal(t, both.Metrics.Candidates, again.Metrics.Candidates)
	assert.Equal(t, offload.Transforms, again.Decision.Cut)
	alone := job()
	assert.False(t, alone.Known.Remote)
	assert.Len(t, alone.Metrics.Candidates, 1)
}

// TestAChosenStorageThatGoesAway is away in the middle of the job, and comes back. The trainer's own CPUs make its
// splits meanwhile, and the storage that was not chosen makes none.
func TestAChosenStorageThatGoesAway(t *testing.T) {
	local, first := newFake(t, 4005, []int{0, 1}), newFake(t, 4005, []int{0, 1})
	also := &elsewhere{fakeStorage: newFake(t, 4005, []int{0, 1})}
	local.p, first.p, also.p = 100, 200, 900
	log := &said{}
	o := sharedOptions(local, dataset.Fastest, -1)
	o.Logger, o.QueueBytes, o.Epochs = slog.New(log), 2000, 200
	o.RowsPerSecond, o.Offload.Also = 3000, []RemoteStorage{{also, offload.Transforms}}
	j, err := Submit(t.Context(), first, o)
	require.NoError(t, err)
	var rows []int64
	phase := 0
	for mb, err := range j.MiniBatches(t.Context()) {
		require.NoError(t, err)
		rows = append(rows, mb.Values64...)
		switch {
		case phase == 0 && len(rows) > 500:
			also.isAway.Store(true)
			phase = 1
		case phase == 1 && log.count(saysAllLocal) == 1:
			also.isAway.Store(false)
			phase = 2
		case phase == 2 && log.count(saysBack) == 1:
			phase = 3
		}
		if phase == 3 && len(rows)%(2*4005) == 0 {
			break
		}
	}
	require.Equal(t, 3, phase)
	for len(rows) > 0 {
		checkRows(t, local, 4005, rows[:2*4005])
		rows = rows[2*4005:]
	}
	assert.Zero(t, first.opened.Load())
	require.NoError(t, j.Close())
}

// TestStoragesThatAreAwayAtTheBeginning has one of two storages, and both, away when the job begins: one that answers
// is chosen, and without any everything is local, which is logged once.
func TestStoragesThatAreAwayAtTheBeginning(t *testing.T) {
	for name, c := range map[string]struct {
		away     [2]bool
		cut      offload.Cut
		allLocal int
	}{
		"the first":   {[2]bool{true, false}, offload.Transforms, 0},
		"the further": {[2]bool{false, true}, offload.ReadAndTransforms, 0},
		"both":        {[2]bool{true, true}, offload.None, 1},
	} {
		t.Run(name, func(t *testing.T) {
			local := newFake(t, 1005, []int{0, 1})
			var remote [2]*elsewhere
			for i := range remote {
				remote[i] = &elsewhere{fakeStorage: newFake(t, 1005, []int{0, 1})}
				remote[i].p = 500
				remote[i].isAway.Store(c.away[i])
			}
			local.p = 100
			log := &said{}
			o := sharedOptions(local, dataset.Fastest, -1)
			o.Logger, o.RowsPerSecond = slog.New(log), 3000
			o.Offload.Also = []RemoteStorage{{remote[1], offload.Transforms}}
			j, err := Submit(t.Context(), remote[0], o)
			require.NoError(t, err)
			rows, _ := take(t, j, -1)
			checkRows(t, local, 1005, rows)
			r, err := j.Report(t.Context())
			require.NoError(t, err)
			assert.Equal(t, c.cut, r.Offload.Decision.Cut)
			assert.Equal(t, c.allLocal, log.count(saysAllLocal))
			for i := range remote {
				assert.Equal(t, !c.away[i] && c.cut == []offload.Cut{offload.ReadAndTransforms, offload.Transforms}[i],
					remote[i].opened.Load() > 0)
			}
			require.NoError(t, j.Close())
		})
	}
}

// opensNothing is a storage that answers every call but Open.
type opensNothing struct{ *fakeStorage }

func (opensNothing) Open(context.Context, api.SplitRequest) (api.Stream, error) { return nil, errGone }

// TestAStorageThatCannotBeProfiled is not chosen, and keeps no drive of the other storage from making splits.
func TestAStorageThatCannotBeProfiled(t *testing.T) {
	local, first := newFake(t, 1005, []int{0, 1}), newFake(t, 1005, []int{0, 1})
	local.delay = 10 * time.Millisecond
	log := &said{}
	o := profiledOptions(local, Step{Run: func(context.Context, *tensor.MiniBatch) error { return nil }})
	o.Logger = slog.New(log)
	o.Offload.Also = []RemoteStorage{{opensNothing{newFake(t, 1005, []int{0, 1})}, offload.Transforms}}
	j, err := Submit(t.Context(), first, o)
	require.NoError(t, err)
	profiled := first.opened.Load()
	rows, _ := take(t, j, -1)
	checkRows(t, local, 1005, rows)
	r, err := j.Report(t.Context())
	require.NoError(t, err)
	assert.Equal(t, offload.ReadAndTransforms, r.Offload.Decision.Cut)
	assert.Len(t, r.Offload.Metrics.Candidates, 1)
	assert.Greater(t, first.opened.Load(), profiled)
	assert.Equal(t, 1, log.count("WARN a storage elsewhere is away: the policy chooses among the others"))
	require.NoError(t, j.Close())
}

// TestFurtherStoragesAreChecked refuses storages of which a policy cannot choose, and takes one of each cut.
func TestFurtherStoragesAreChecked(t *testing.T) {
	local := newFake(t, 10, []int{0})
	half := 0.5
	for name, o := range map[string]Offload{
		"without local":    {Also: []RemoteStorage{{local, offload.Transforms}}},
		"a fixed share":    {Local: local, Ratio: &half, Also: []RemoteStorage{{local, offload.Transforms}}},
		"no storage":       {Local: local, Also: []RemoteStorage{{nil, offload.Transforms}}},
		"no cut":           {Local: local, Also: []RemoteStorage{{local, offload.None}}},
		"an unknown cut":   {Local: local, Also: []RemoteStorage{{local, offload.All + 1}}},
		"the first's cut":  {Local: local, Also: []RemoteStorage{{local, offload.ReadAndTransforms}}},
		"the same cut too": {Local: local, Cut: offload.All, Also: []RemoteStorage{{local, offload.All}}},
		"twice":            {Local: local, Also: []RemoteStorage{{local, offload.All}, {local, offload.All}}},
	} {
		_, err := Submit(t.Context(), local, Options{Pipeline: spec(), RowsPerSecond: 1, Offload: o})
		require.ErrorIs(t, err, ErrOptions, name)
	}
	j, err := Submit(t.Context(), newFake(t, 10, []int{0}), Options{Pipeline: spec(), RowsPerSecond: 1, Offload: Offload{
		Local: local, Also: []RemoteStorage{{newFake(t, 10, []int{0}), offload.Transforms},
			{newFake(t, 10, []int{0}), offload.All}}}})
	require.NoError(t, err)
	require.NoError(t, j.Close())
}
