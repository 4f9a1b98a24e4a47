package profile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/offload"
)

// profiledTrainer is a trainer in virtual time: it waits for each mini-batch as long as a side takes for it.
type profiledTrainer struct {
	step, own, others time.Duration // of a mini-batch
	now               Sample
	profiler          *Profiler
	taken             uint64
	samples           int
}

const profiledRows = 10

func newProfiledTrainer(speed Trainer) *profiledTrainer {
	m := &profiledTrainer{step: 10 * time.Millisecond, own: 40 * time.Millisecond, others: 20 * time.Millisecond,
		now: Sample{At: time.Unix(1000, 0), CPU: time.Hour, Stall: time.Minute}}
	m.profiler = New(speed, 4, func() Sample { m.samples++; return m.now })
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
		m.now.At, m.now.Stall, m.now.CPU = m.now.At.Add(period), m.now.Stall+period-m.step, m.now.CPU+cpu
		mb := &tensor.MiniBatch{Name: tensor.Name{Number: m.taken}, Rows: profiledRows}
		m.taken++
		m.profiler.NoteMade(mb.Name, own)
		m.profiler.NoteTaken(mb)
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

var knownTrainer = Trainer{RowsPerSecond: 1000, CPUPerRow: 5e-4, CPUKnown: true}

// TestAShortJobIsNotProfiled looks at half a second of the training, 50 mini-batches a second here: a job of which less
// than 25 seconds are left is not profiled, and its report ends the leader's wait for a profile.
func TestAShortJobIsNotProfiled(t *testing.T) {
	t.Parallel()
	for ahead, short := range map[uint64]bool{1200: true, 1300: false, 0: false} {
		m := newProfiledTrainer(knownTrainer)
		m.profiler.ahead, m.profiler.clock = ahead, func() time.Time { return m.now.At }
		report := &apiv1.RankReport{}
		m.take(false, 1)
		m.profiler.Report(report)
		assert.Equal(t, ahead == 0, report.Profiling != "", "the job is looked at: %d", ahead)
		m.take(false, 25)
		m.profiler.Report(report)
		assert.Equal(t, short, report.Profiling == "", "%d", ahead)
		assert.Equal(t, short, m.profiler.Status().LeftOut, "%d", ahead)
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
	m.profiler.Report(report)
	assert.Empty(t, report.Profiling, "a trainer that takes nothing is not profiled")
	m.take(false, 1)
	m.profiler.Report(report)
	assert.Equal(t, apiv1.SideOwn, report.Profiling)
	assert.Equal(t, profileWarmup+1+profileSteps, m.until(t, true, apiv1.SideOthers))
	m.take(true, 20) // leases from before, which are not the others'
	assert.Equal(t, profileWarmup+1+profileSteps, m.until(t, false, ""))
	m.take(true, 200)
	ended, got, took := m.profiler.Ended()
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
	m.profiler.Report(report)
	assert.Empty(t, report.Profiling)
	assert.Same(t, got, report.Profile)
	var none *Profiler
	none.Report(report)
	none.NoteMade(tensor.Name{}, true)
}

// TestProfileOfAnUnknownTrainer: Gthp is the throughput while the trainer did not wait, and CPU times that contain the
// trainer's are left out.
func TestProfileOfAnUnknownTrainer(t *testing.T) {
	t.Parallel()
	m := newProfiledTrainer(Trainer{})
	m.until(t, true, apiv1.SideOthers)
	m.until(t, false, "")
	_, got, _ := m.profiler.Ended()
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
	_, got, _ := m.profiler.Ended()
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
	m.profiler.trainer.RowsPerSecond = 1e9
	assert.Equal(t, profileWarmup+1+2*profileSteps, m.until(t, true, apiv1.SideOthers))

	m = newProfiledTrainer(knownTrainer)
	m.take(true, 40)
	m.take(false, 1)
	assert.Equal(t, profileWarmup+1+profileSteps, m.until(t, true, apiv1.SideOthers))

	m = newProfiledTrainer(knownTrainer)
	m.take(true, 40)
	m.now.At = m.now.At.Add(time.Hour)
	next := &tensor.MiniBatch{Name: tensor.Name{Epoch: 1}, Rows: profiledRows}
	m.profiler.NoteMade(next.Name, true)
	assert.False(t, m.profiler.NoteTaken(next))
	assert.Nil(t, m.profiler.begin)

	m = newProfiledTrainer(knownTrainer)
	m.take(true, profileWarmup)
	m.now.Queued = 5
	m.take(true, 1)
	m.now.Queued = 0
	m.until(t, true, apiv1.SideOthers)
	assert.InEpsilon(t, 225, m.profiler.local.rowsPerSecond, 1e-9)

	m = newProfiledTrainer(knownTrainer)
	assert.Equal(t, 550, m.until(t, false, ""), "10 s, in steps of profileSteps")
	ended, got, _ := m.profiler.Ended()
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
			m.now.Queued = max(m.now.Queued-perMiniBatch, 0)
			m.take(true, 1)
		}
	}
	m.own, m.now.Queued = slow, profileSteps
	drain(profileWarmup+1+profileSteps, 1)
	assert.Equal(t, apiv1.SideOwn, m.profiler.measured, "the whole window came from the queue")
	m.own = steady
	assert.Equal(t, profileSteps, m.until(t, true, apiv1.SideOthers), "the next window begins at once")
	assert.InEpsilon(t, 250, m.profiler.local.rowsPerSecond, 1e-9)

	m = newProfiledTrainer(knownTrainer)
	m.now.Queued = 5
	drain(profileWarmup+1, 0)
	drain(profileSteps, 1)
	assert.Equal(t, apiv1.SideOthers, m.profiler.measured, "a tenth from the queue is steady")
	m = newProfiledTrainer(knownTrainer)
	m.now.Queued = 6
	drain(profileWarmup+1, 0)
	drain(profileSteps, 1)
	assert.Equal(t, apiv1.SideOwn, m.profiler.measured)

	m = newProfiledTrainer(knownTrainer)
	m.now.Queued = 1 << 20
	drain(profilePatience+2*profileSteps, 1)
	ended, result, _ := m.profiler.Ended()
	assert.True(t, ended, "a queue that never empties ends the profile")
	assert.Nil(t, result)
}

// TestAMiniBatchOfBothSidesMeasuresNeither has a mini-batch whose fragments both sides made in the window of each side:
// the window begins again, whichever fragment came last.
func TestAMiniBatchOfBothSidesMeasuresNeither(t *testing.T) {
	t.Parallel()
	m := newProfiledTrainer(knownTrainer)
	m.take(false, 1)
	for _, own := range []bool{true, false} {
		side := map[bool]string{true: apiv1.SideOthers, false: ""}[own]
		for _, last := range []bool{true, false} {
			m.take(own, profileWarmup+profileSteps)
			name := tensor.Name{Number: m.taken}
			m.profiler.NoteMade(name, !last)
			m.profiler.NoteMade(name, own) // a second fragment of the side
			m.take(last, 1)
		}
		assert.Equal(t, profileWarmup+1+profileSteps, m.until(t, own, side))
	}
}

// TestWhichJobsAreProfiled checks that a job is profiled if a policy decides its share and the job is long enough.
func TestWhichJobsAreProfiled(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		offload              string
		epochs, epoch, owned uint64
		want                 bool
	}{
		{"extended", 1, 0, leastMiniBatches, true}, {"extended", 0, 0, leastMiniBatches, true},
		{"paper", 25, 0, leastInEpoch, true}, {"paper", 25, 1, leastInEpoch, false},
		{"extended", 1, 0, leastMiniBatches - 1, false}, {"extended", 1 << 60, 0, leastInEpoch - 1, false},
		{"fastflow-code", 1 << 63, 0, leastInEpoch, true}, {"0.5", 1, 0, leastMiniBatches, false},
		{"", 1, 0, leastMiniBatches, false}, {"extended", 2, 2, leastMiniBatches, false},
	} {
		ahead, suits := Suits(&apiv1.JobSpec{Offload: v.offload, Epochs: v.epochs}, v.epoch, v.owned)
		assert.Equal(t, v.want, suits, "%v", v)
		assert.Equal(t, v.want, ahead >= leastMiniBatches, "%v", v)
	}
}

// TestOnlyTheOthersAreMeasured: with metrics of the rank's own CPUs from the store, the profile is the same as if both
// sides had been measured.
func TestOnlyTheOthersAreMeasured(t *testing.T) {
	t.Parallel()
	m := newProfiledTrainer(knownTrainer)
	m.until(t, true, apiv1.SideOthers)
	m.until(t, false, "")
	_, want, _ := m.profiler.Ended()
	m = newProfiledTrainer(knownTrainer)
	m.profiler.KnowOwn(&offload.Metrics{Gthp: want.Gthp, Lthp: want.Lthp, Pcycle: want.Pcycle, Tcycle: want.Tcycle})
	assert.Equal(t, profileWarmup+1+profileSteps, m.until(t, false, ""))
	_, got, _ := m.profiler.Ended()
	require.NotNil(t, got)
	for _, v := range []struct{ want, got float64 }{
		{want.Gthp, got.Gthp}, {want.Lthp, got.Lthp}, {want.Rthp, got.Rthp}, {want.Tcycle, got.Tcycle},
		{want.Pcycle, got.Pcycle}, {want.Ocycle, got.Ocycle},
	} {
		assert.InEpsilon(t, v.want, v.got, 1e-9, "%v", got)
	}
}

// TestTheTimeOfAProfile: while the profile goes on, it takes the whole training; then its share falls.
func TestTheTimeOfAProfile(t *testing.T) {
	t.Parallel()
	m := newProfiledTrainer(knownTrainer)
	m.profiler.clock = func() time.Time { return m.now.At }
	m.take(true, 10)
	s := m.profiler.Status()
	assert.InDelta(t, s.Training, s.Seconds, 0)
	assert.Empty(t, s.From)
	m.until(t, true, apiv1.SideOthers)
	m.until(t, false, "")
	ended := m.profiler.Status()
	assert.Equal(t, apiv1.ProfileMeasured, ended.From)
	m.take(true, 100)
	s = m.profiler.Status()
	assert.InDelta(t, ended.Seconds, s.Seconds, 0)
	assert.InDelta(t, ended.Training+100*m.own.Seconds(), s.Training, 1e-9)
	var report apiv1.RankReport
	m.profiler.Report(&report)
	assert.InDelta(t, s.Seconds, report.ProfileSeconds, 0)
	assert.InDelta(t, s.Training, report.TrainingSeconds, 0)
	assert.Equal(t, apiv1.ProfileMeasured, report.ProfileFrom)
	var none *Profiler
	assert.Equal(t, Status{}, none.Status())
}
