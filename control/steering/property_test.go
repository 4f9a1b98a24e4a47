package steering

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/record"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/autoscale"
	"github.com/millrace/millrace/trainmgr/offload"
)

// walk is a job whose drives, workers and launchers come, go and report at random.
type walk struct {
	*world
	rt        *rapid.T
	measuring *fleet.DriveID
	failedAt  map[fleet.DriveID]time.Time
	changedAt time.Time // when the autoscaler changed the number of drives and workers last
	bound     [3]int    // holders, workers and workers that can be started, then
}

// TestRandomWalk: whatever drives, workers and launchers do, the decisions keep what the package promises.
func TestRandomWalk(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ranks := rapid.Uint32Range(1, 3).Draw(rt, "ranks")
		terms := Terms{ID: "x", BatchRows: 10, Spec: &apiv1.JobSpec{Ranks: ranks,
			MaxDrives: rapid.SampledFrom([]int32{0, 1, 2, 3}).Draw(rt, "most")},
			Makers: rapid.SampledFrom([]ledger.Makers{0, 0, ledger.NoAny, ledger.NoOwn,
				ledger.NoDrives | ledger.NoCPUs | ledger.NoCards}).Draw(rt, "not"),
			Offload: record.Offload{Shares: rapid.Bool().Draw(rt, "shares"), Policy: offload.Extended}}
		w := &walk{world: newWorld(rt, terms), rt: rt, failedAt: map[fleet.DriveID]time.Time{}}
		w.view.EpochRows, w.view.EpochsAfter, w.view.Status.RowsLeft = 1e6, 100, 1e6
		for i := range 3 {
			w.view.Partitions = append(w.view.Partitions, dataset.Partition{Name: fmt.Sprint(i), Rows: 1000})
			w.view.Holding = append(w.view.Holding, nil)
		}
		if a, err := w.job.Allocate(&w.view.Supply, &w.view.Rates, false); err == nil {
			w.view.Allocation = a
		}
		for range rapid.IntRange(1, 60).Draw(rt, "reviews") {
			for range rapid.IntRange(0, 3).Draw(rt, "events") {
				w.event()
			}
			w.review()
		}
	})
}

// draw draws a name of a worker.
func (w *walk) draw(kind string) string {
	return kind + "/" + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(w.rt, kind)
}

// event lets something happen to the job.
func (w *walk) event() {
	rank := rapid.Uint32Range(0, w.job.Spec.Ranks-1).Draw(w.rt, "rank")
	switch rapid.SampledFrom([]string{"drive", "worker", "own", "gone", "attach", "detach", "report", "measured", "failed",
		"startable", "phase"}).Draw(w.rt, "event") {
	case "drive":
		d := worker(&w.view.Holders, w.draw("drive"))
		d.Prepared, d.Drive.Threads = rapid.Bool().Draw(w.rt, "prepared"), rapid.Int32Range(0, 4).Draw(w.rt, "threads")
		i := rapid.IntRange(0, 2).Draw(w.rt, "partition")
		if !slices.Contains(w.view.Holding[i], d.ID) {
			w.view.Holding[i] = append(slices.Clone(w.view.Holding[i]), d.ID)
		}
	case "worker":
		if w.job.Makers&ledger.NoAny == 0 {
			worker(&w.view.Workers, w.draw("worker")).Prepared = rapid.Bool().Draw(w.rt, "prepared")
		}
	case "own":
		if w.job.Makers&ledger.NoOwn == 0 {
			d := worker(&w.view.Workers, fmt.Sprintf("own/%d", rank))
			d.Drive.Serves, d.Prepared = &apiv1.RankName{Job: "x", Rank: rank}, true
			w.view.Status.Ranks[rank].Own = 1
		}
	case "gone":
		if rapid.Bool().Draw(w.rt, "own") {
			w.remove(fmt.Sprintf("own/%d", rank))
			w.view.Status.Ranks[rank].Own = 0
			break
		}
		w.remove(w.draw("drive"))
		w.remove(w.draw("worker"))
	case "attach":
		w.view.Status.Ranks[rank].Attached = true
		w.job.Attached(rank, rapid.Bool().Draw(w.rt, "same run"))
		w.carryOut(w.checkShares(w.job.ReviewShares(w.view)))
	case "detach":
		w.view.Status.Ranks[rank].Attached = false
	case "report":
		r := &apiv1.RankReport{
			TRowsPerSecond: rapid.Float64Range(0, 1e4).Draw(w.rt, "t"),
			StallSeconds:   w.view.Seconds * rapid.Float64Range(0, 1).Draw(w.rt, "stall"),
			QueueBatches:   rapid.Float64Range(0, 4).Draw(w.rt, "queue"), Blocked: rapid.Bool().Draw(w.rt, "blocked"),
			Profiling: rapid.SampledFrom([]string{"", "", "", apiv1.SideOwn, apiv1.SideOthers}).Draw(w.rt, "profiling"),
		}
		if rapid.Bool().Draw(w.rt, "sides") {
			r.Own = &apiv1.SideReport{Rows: 10 * w.view.Seconds, BusySeconds: w.view.Seconds}
			r.Others = &apiv1.SideReport{Rows: 20 * w.view.Seconds, BusySeconds: w.view.Seconds}
		}
		w.job.Called(rank, r)
		w.job.Delivered(1)
	case "measured":
		w.endMeasurement(true)
	case "failed":
		w.endMeasurement(false)
	case "startable":
		w.view.Startable = rapid.IntRange(0, 3).Draw(w.rt, "startable")
	case "phase":
		w.view.Running = rapid.Bool().Draw(w.rt, "running")
	}
}

// endMeasurement ends the measurement that runs, if there is one.
func (w *walk) endMeasurement(known bool) {
	if w.measuring == nil {
		return
	}
	at := *w.measuring
	w.measuring = nil
	if !known {
		w.failedAt[at] = w.view.Now
		w.job.NotMeasured(at, w.view.Now)
		return
	}
	w.world.measured(at.Node+"/"+at.Drive, rapid.Float64Range(1, 1e4).Draw(w.rt, "p"))
}

// review has the job reviewed, and checks the decision.
func (w *walk) review() {
	before := w.view
	d := w.step(time.Duration(rapid.Int64Range(int64(time.Second), int64(3*time.Second)).Draw(w.rt, "pause")))
	w.checkShares(d.Shares)
	w.checkNumbers(d)
	w.checkMeasurement(d)
	if !before.Running {
		assert.Equal(w.rt, Decision{NeedsWorkers: d.NeedsWorkers}, d, "of a job that does not run")
		return
	}
	assert.Zero(w.rt, before.T*d.T, "T is learned once")
	assert.Empty(w.rt, w.checkShares(w.job.ReviewShares(w.view)), "an equal view changes no share")
}

// checkShares checks that shares are shares, of ranks that can have them.
func (w *walk) checkShares(shares []Share) []Share {
	for _, s := range shares {
		r := w.view.Status.Ranks[s.Rank]
		require.True(w.rt, w.job.Divides())
		require.NotEmpty(w.rt, s.Why)
		if r.Own == 0 {
			require.InDelta(w.rt, Undivided, s.Ratio, 0, "the rank has no CPUs of its own")
			continue
		}
		require.True(w.rt, s.Ratio >= 0 && s.Ratio <= 1, "%v", s)
		require.True(w.rt, r.Attached, "a share of a rank that is detached: %v", s)
	}
	return shares
}

// checkNumbers checks the bounds of drives and workers, and that the numbers do not change twice within the time in
// which the autoscaler lets a change settle. A change because a bound moved, or T was learned, is not counted.
func (w *walk) checkNumbers(d Decision) {
	if !w.view.Running {
		return
	}
	drives, workers := w.job.Allowed()
	most, bound := int(w.job.Spec.MaxDrives), [3]int{len(w.view.Holders), len(w.view.Workers), w.view.Startable}
	if most > 0 {
		require.LessOrEqual(w.rt, drives, most)
		require.LessOrEqual(w.rt, min(drives, len(w.view.Holders))+max(workers, 0), most)
	}
	require.Positive(w.rt, drives)
	if d.Allocation == nil {
		return
	}
	require.Equal(w.rt, [2]int{d.Allocation.Drives, d.Allocation.Workers}, [2]int{drives, workers})
	if bound == w.bound && d.T == 0 {
		since := w.view.Now.Sub(w.changedAt).Seconds()
		require.GreaterOrEqual(w.rt, since, float64(autoscale.DefaultSettle), "the numbers changed a moment before")
		w.changedAt = w.view.Now
	}
	w.bound = bound
}

// checkMeasurement checks that one worker is measured at a time, whose P is not known, and which disturbs no launcher.
func (w *walk) checkMeasurement(d Decision) {
	if d.Measure == nil {
		return
	}
	require.Nil(w.rt, w.measuring, "two workers are measured at once")
	w.measuring = d.Measure
	all := slices.Concat(w.view.Holders, w.view.Workers)
	i := slices.IndexFunc(all, func(c Worker) bool { return c.ID == *d.Measure })
	require.GreaterOrEqual(w.rt, i, 0, "the worker is not there")
	require.Equal(w.rt, i < len(w.view.Holders), d.Holder)
	require.True(w.rt, all[i].Prepared)
	require.Zero(w.rt, w.view.P[all[i].Name()], "a measured P is not measured again")
	if at, failed := w.failedAt[*d.Measure]; failed {
		require.GreaterOrEqual(w.rt, w.view.Now.Sub(at), measureAgain)
	}
	if serves := all[i].Drive.GetServes(); serves != nil {
		k := w.job.launchers[serves.Rank]
		require.True(w.rt, k.called, "the launcher measures T")
		require.Empty(w.rt, k.report.GetProfiling(), "the launcher measures its profile")
	}
}
