package remote

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
)

// profiledTrainer is a trainer in virtual time: it waits for each mini-batch as long as a side takes for it.
type profiledTrainer struct {
	step, own, others time.Duration // of a mini-batch
	now               profileSample
	profiler          *profiler
	taken             uint64
	samples           int
}

const profiledRows = 10

func newProfiledTrainer(speed trainerSpeed) *profiledTrainer {
	m := &profiledTrainer{step: 10 * time.Millisecond, own: 40 * time.Millisecond, others: 20 * time.Millisecond,
		now: profileSample{at: time.Unix(1000, 0), cpu: time.Hour, stall: time.Minute}}
	m.profiler = newProfiler(speed, 4, func() profileSample { m.samples++; return m.now })
	return m
}

// take makes the trainer take mini-batches of a side, each after the step on the one before.
func (m *profiledTrainer) take(own bool, count int) {
	for range count {
		period, cpu := m.others, 6*time.Millisecond
		if own {
			period, cpu = m.own, 35*time.Millisecond
		}
		period = max(period, m.step)
		m.now.at, m.now.stall, m.now.cpu = m.now.at.Add(period), m.now.stall+period-m.step, m.now.cpu+cpu
		mb := &tensor.MiniBatch{Name: tensor.Name{Number: m.taken}, Rows: profiledRows}
		m.taken++
		m.profiler.noteMade(mb.Name, own)
		m.profiler.noteTaken(mb)
	}
}

// until takes mini-batches of a side until the profiler measures another one. It returns how many it took.
func (m *profiledTrainer) until(t *testing.T, own bool, side string) (taken int) {
	t.Helper()
	for ; m.profiler.measured != side; taken++ {
		require.Less(t, taken, 10_000)
		m.take(own, 1)
	}
	return taken
}

var knownTrainer = trainerSpeed{rowsPerSecond: 1000, cpuPerRow: 5e-4, cpuKnown: true}

// TestAShortJobIsNotProfiled looks at half a second of the training, 50 mini-batches a second here: a job of which less
// than 25 seconds are left is not profiled, and its report ends the leader's wait for a profile.
func TestAShortJobIsNotProfiled(t *testing.T) {
	t.Parallel()
	for ahead, short := range map[uint64]bool{1200: true, 1300: false, 0: false} {
		m := newProfiledTrainer(knownTrainer)
		m.profiler.ahead, m.profiler.clock = ahead, func() time.Time { return m.now.at }
		report := &apiv1.RankReport{}
		m.take(false, 1)
		m.profiler.report(report)
		assert.Equal(t, ahead == 0, report.Profiling != "", "the job is looked at: %d", ahead)
		m.take(false, 25)
		m.profiler.report(report)
		assert.Equal(t, short, report.Profiling == "", "%d", ahead)
		assert.Equal(t, short, m.profiler.status().LeftOut, "%d", ahead)
		assert.Positive(t, report.ProfileSeconds)
		assert.Nil(t, report.Profile)
		if !short {
			m.until(t, true, apiv1.SideOthers)
		}
	}
}

// TestProfileOfBothSides checks every metric: throughputs with the trainer, and CPU times without it.
func TestProfileOfBothSides(t *testing.T) {
	t.Parallel()
	m := newProfiledTrainer(knownTrainer)
	report := &apiv1.RankReport{}
	m.profiler.report(report)
	assert.Empty(t, report.Profiling, "a trainer that takes nothing is not profiled")
	m.take(false, 1)
	m.profiler.report(report)
	assert.Equal(t, apiv1.SideOwn, report.Profiling)
	assert.Equal(t, profileWarmup+1+profileSteps, m.until(t, true, apiv1.SideOthers))
	m.take(true, 20) // leases from before, which are not the others'
	assert.Equal(t, profileWarmup+1+profileSteps, m.until(t, false, ""))
	m.take(true, 200)
	ended, got, took := m.profiler.ended()
	assert.True(t, ended)
	assert.Positive(t, took)
	require.NotNil(t, got)
	for _, v := range []struct{ want, got float64 }{
		{1000, got.Gthp}, {250, got.Lthp}, {500, got.Rthp}, {5e-4, got.Tcycle}, {3e-3, got.Pcycle}, {1e-4, got.Ocycle},
		{4, got.Cores},
	} {
		assert.InEpsilon(t, v.want, v.got, 1e-9, "%v", got)
	}
	assert.Equal(t, 2+2*2, m.samples, "two at the beginning, two of a window")
	m.profiler.report(report)
	assert.Empty(t, report.Profiling)
	assert.Same(t, got, report.Profile)
	var none *profiler
	none.report(report)
	none.noteMade(tensor.Name{}, true)
}

// TestProfileOfAnUnknownTrainer: Gthp is the throughput while the trainer did not wait, and CPU times that contain the
// trainer's are left out.
func TestProfileOfAnUnknownTrainer(t *testing.T) {
	t.Parallel()
	m := newProfiledTrainer(trainerSpeed{})
	m.until(t, true, apiv1.SideOthers)
	m.until(t, false, "")
	_, got, _ := m.profiler.ended()
	assert.InEpsilon(t, 1000, got.Gthp, 1e-9)
	assert.Zero(t, got.Tcycle+got.Pcycle+got.Ocycle)
}

// TestProfileWithoutAStall checks FastFlow 7.4: without a stall "FastFlow prevents measuring other metrics after a
// short profiling of Lthp and Gthp".
func TestProfileWithoutAStall(t *testing.T) {
	t.Parallel()
	m := newProfiledTrainer(knownTrainer)
	m.own = 10500 * time.Microsecond
	m.until(t, true, "")
	_, got, _ := m.profiler.ended()
	require.NotNil(t, got)
	assert.Zero(t, got.Rthp)
	assert.Positive(t, got.Lthp)
}

// TestProfileWindows: a fast trainer's window has 100 mini-batches; a window begins again after a mini-batch of the
// other side, and in another epoch; mini-batches that waited do not count; a side that makes nothing ends the profile.
func TestProfileWindows(t *testing.T) {
	t.Parallel()
	m := newProfiledTrainer(knownTrainer)
	m.step, m.own = time.Microsecond, 2*time.Microsecond
	m.profiler.trainer.rowsPerSecond = 1e9
	assert.Equal(t, profileWarmup+1+2*profileSteps, m.until(t, true, apiv1.SideOthers))

	m = newProfiledTrainer(knownTrainer)
	m.take(true, 40)
	m.take(false, 1)
	assert.Equal(t, profileWarmup+1+profileSteps, m.until(t, true, apiv1.SideOthers))

	m = newProfiledTrainer(knownTrainer)
	m.take(true, 40)
	m.now.at = m.now.at.Add(time.Hour)
	next := &tensor.MiniBatch{Name: tensor.Name{Epoch: 1}, Rows: profiledRows}
	m.profiler.noteMade(next.Name, true)
	assert.False(t, m.profiler.noteTaken(next))
	assert.Nil(t, m.profiler.begin)

	m = newProfiledTrainer(knownTrainer)
	m.take(true, profileWarmup)
	m.now.queued = 5
	m.take(true, 1)
	m.now.queued = 0
	m.until(t, true, apiv1.SideOthers)
	assert.InEpsilon(t, 225, m.profiler.local.rowsPerSecond, 1e-9)

	m = newProfiledTrainer(knownTrainer)
	assert.Equal(t, 550, m.until(t, false, ""), "10 s, in steps of profileSteps")
	ended, got, _ := m.profiler.ended()
	assert.True(t, ended)
	assert.Nil(t, got)

	m = newProfiledTrainer(knownTrainer)
	m.others = time.Second
	assert.Equal(t, profilePatience, m.until(t, false, ""))
}

// TestAQueueThatDrains checks that a window counts only once the queue has stopped draining. Until then the trainer
// runs at its own speed and leaves the side less CPU time than later.
func TestAQueueThatDrains(t *testing.T) {
	t.Parallel()
	slow, steady := 160*time.Millisecond, 40*time.Millisecond
	m := newProfiledTrainer(knownTrainer)
	drain := func(count, perMiniBatch int) {
		for range count {
			m.now.queued = max(m.now.queued-perMiniBatch, 0)
			m.take(true, 1)
		}
	}
	m.own, m.now.queued = slow, profileSteps
	drain(profileWarmup+1+profileSteps, 1)
	assert.Equal(t, apiv1.SideOwn, m.profiler.measured, "the whole window came from the queue")
	m.own = steady
	assert.Equal(t, profileSteps, m.until(t, true, apiv1.SideOthers), "the next window begins at once")
	assert.InEpsilon(t, 250, m.profiler.local.rowsPerSecond, 1e-9)

	m = newProfiledTrainer(knownTrainer)
	m.now.queued = 5
	drain(profileWarmup+1, 0)
	drain(profileSteps, 1)
	assert.Equal(t, apiv1.SideOthers, m.profiler.measured, "a tenth from the queue is steady")
	m = newProfiledTrainer(knownTrainer)
	m.now.queued = 6
	drain(profileWarmup+1, 0)
	drain(profileSteps, 1)
	assert.Equal(t, apiv1.SideOwn, m.profiler.measured)

	m = newProfiledTrainer(knownTrainer)
	m.now.queued = 1 << 20
	drain(profilePatience+2*profileSteps, 1)
	ended, result, _ := m.profiler.ended()
	assert.True(t, ended, "a queue that never empties ends the profile")
	assert.Nil(t, result)
}

// TestWhichJobsAreProfiled checks that a job is profiled if a policy decides its share and the job is long enough.
func TestWhichJobsAreProfiled(t *testing.T) {
	t.Parallel()
	epoch := func(number, owned uint64) *trainmgr.Epoch {
		return &trainmgr.Epoch{Number: number, Owned: []dataset.Range{{From: 5, To: 5 + owned}}}
	}
	for _, v := range []struct {
		offload string
		epochs  uint64
		epoch   *trainmgr.Epoch
		want    bool
	}{
		{"extended", 1, epoch(0, leastProfiled), true}, {"extended", 0, epoch(0, leastProfiled), true},
		{"paper", 25, epoch(0, leastInEpoch), true}, {"paper", 25, epoch(1, leastInEpoch), false},
		{"extended", 1, epoch(0, leastProfiled-1), false}, {"extended", 1 << 60, epoch(0, leastInEpoch-1), false},
		{"fastflow-code", 1 << 63, epoch(0, leastInEpoch), true}, {"0.5", 1, epoch(0, leastProfiled), false},
		{"", 1, epoch(0, leastProfiled), false}, {"extended", 2, epoch(2, leastProfiled), false},
	} {
		ahead, suits := suitsProfile(&apiv1.JobSpec{Offload: v.offload, Epochs: v.epochs}, v.epoch)
		assert.Equal(t, v.want, suits, "%v", v)
		assert.Equal(t, v.want, ahead >= leastProfiled, "%v", v)
	}
}

// TestMeasuredStepCountsRuns: rows of every run are added up, and errors pass.
func TestMeasuredStepCountsRuns(t *testing.T) {
	t.Parallel()
	rows, cpu, failure := int64(0), time.Duration(0), errors.New("a fault")
	step := measuredStep(trainmgr.Step{Run: func(_ context.Context, mb *tensor.MiniBatch) error {
		if mb.Rows == 7 {
			return failure
		}
		return nil
	}}, &rows, &cpu)
	require.NoError(t, step.Run(t.Context(), &tensor.MiniBatch{Rows: 5}))
	require.ErrorIs(t, step.Run(t.Context(), &tensor.MiniBatch{Rows: 7}), failure)
	assert.EqualValues(t, 12, rows)
	assert.GreaterOrEqual(t, cpu, time.Duration(0))
	assert.Nil(t, measuredStep(trainmgr.Step{}, &rows, &cpu).Run)
}

// TestALauncherSendsItsProfile: the launcher asks for one side after the other, and sends what it measured.
func TestALauncherSendsItsProfile(t *testing.T) {
	t.Parallel()
	c := newCluster(t, clusterOptions{rows: 4 * leastProfiled, batch: 4, split: 4, nodes: 2})
	c.spec.Offload = "extended"
	c.nodes[0].serves = true
	j := c.attach(t, c.dial(t), AttachOptions{Profile: true, Pieces: 2, RowsPerSecond: 1e12,
		profilesShortJobs: true})
	sent := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.ContainsFunc(c.reports, func(r *apiv1.RankReport) bool { return r.Profile != nil })
	}
	taken := 0
	require.NoError(t, take(t, c, j, leastProfiled/2, func(*tensor.MiniBatch) {
		// The launcher reports at least twice a second.
		if ended, _, _ := j.rank.profiler.ended(); ended {
			if taken++; taken == 1 {
				require.Eventually(t, sent, time.Minute, time.Millisecond)
			}
		}
	}).err)
	require.Positive(t, taken)
	r, err := j.Report(t.Context())
	require.NoError(t, err)
	require.Len(t, r.Notes, 1)
	assert.Contains(t, r.Notes[0], "the profile took")
	require.NoError(t, j.Close())
	c.mu.Lock()
	defer c.mu.Unlock()
	var sides []string
	var profile *apiv1.OffloadMetrics
	for _, r := range c.reports {
		if len(sides) == 0 || sides[len(sides)-1] != r.Profiling {
			sides = append(sides, r.Profiling)
		}
		if r.Profile != nil {
			profile = r.Profile
		}
	}
	assert.Contains(t, sides, apiv1.SideOwn)
	assert.Contains(t, sides, apiv1.SideOthers)
	require.NotNil(t, profile)
	assert.Positive(t, profile.Lthp)
	assert.Positive(t, profile.Rthp)
	assert.InDelta(t, 1e12, profile.Gthp, 0)
}
