package control

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
)

// TestAPolicySharesTheSplitsOfARank: the policy decides by P of both sides while nothing else is known, by the
// launcher's profile once it has come, and not at all when the rank's own worker has gone. A profile that can never
// be right is refused.
func TestAPolicySharesTheSplitsOfARank(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	st, k := attachToJob(t, c, &apiv1.JobSpec{Name: "job", Offload: "extended",
		Plan: &apiv1.PlanOptions{SplitBatches: 1}})
	report := func(profile *apiv1.OffloadMetrics) error {
		_, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.LeaseResponse, error) {
			return m.Lease(ctx, &apiv1.LeaseRequest{Id: k.id, Session: k.session,
				Report: &apiv1.RankReport{TRowsPerSecond: 1e9, Profile: profile}})
		})
		return err
	}
	comes := func(what string, holds func(r *apiv1.RankStatus) bool) {
		t.Helper()
		var last *apiv1.RankStatus
		require.Eventually(t, func() bool {
			_, err := k.lease(0, 0, 0)
			require.NoError(t, err)
			last = get(t, c, "job").Ranks[0]
			return holds(last)
		}, time.Minute, 5*time.Millisecond, "%s", what)
		t.Logf("%s: %v", what, last)
	}
	comes("nothing is shared", func(r *apiv1.RankStatus) bool { return r.ShareElsewhere == -1 && r.OwnWorkers == 0 })
	w := newWorker(t, "w")
	w.set(func(s *apiv1.NodeStatus) { s.Drives[0].Serves = &apiv1.RankName{Job: st.Id} })
	stopW := w.beats(t, c)
	comes("both sides make a part", func(r *apiv1.RankStatus) bool {
		return r.OwnWorkers == 1 && r.ShareElsewhere > 0 && r.ShareElsewhere < 1 && r.Offload != ""
	})
	require.NoError(t, report(&apiv1.OffloadMetrics{Gthp: 1000, Lthp: 1000, Pcycle: 1e-6, Rthp: 1000, Ocycle: 1e-7}))
	comes("the rank's own CPUs make everything", func(r *apiv1.RankStatus) bool { return r.ShareElsewhere == 0 })
	k.run = "another run"
	require.NoError(t, k.attach(nil))
	comes("the profile was the former run's", func(r *apiv1.RankStatus) bool {
		return r.ShareElsewhere > 0 && r.ShareElsewhere < 1
	})
	for _, profile := range []*apiv1.OffloadMetrics{{Gthp: -1}, {Gthp: math.NaN()}, {Lthp: math.Inf(1)},
		{Gthp: 1, Rthp: 1, Ocycle: 1}} {
		assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(report(profile)), "%v", profile)
	}
	stopW()
	comes("the worker has gone", func(r *apiv1.RankStatus) bool { return r.ShareElsewhere == -1 && r.OwnWorkers == 0 })
	require.NoError(t, k.consume(0))
	until(t, c, "job", "done")
	assert.Len(t, k.got, 400)

	_, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.SubmitJobResponse, error) {
		return m.SubmitJob(ctx, &apiv1.SubmitJobRequest{Spec: &apiv1.JobSpec{Name: "held", Pipeline: st.Spec.Pipeline,
			Offload: "0.5", Placement: "held"}})
	})
	assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
	assert.ErrorContains(t, err, "placement held")
}

// TestAMeasuredSideMakesEverySplit: while a launcher measures a side, the side makes every split of the rank; then the
// policy decides by the profile. A word that names no side is refused.
func TestAMeasuredSideMakesEverySplit(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	st, k := attachToJob(t, c, &apiv1.JobSpec{Name: "job", Offload: "extended",
		Plan: &apiv1.PlanOptions{SplitBatches: 1}})
	w := newWorker(t, "w")
	w.set(func(s *apiv1.NodeStatus) { s.Drives[0].Serves = &apiv1.RankName{Job: st.Id} })
	w.beats(t, c)
	report := func(r *apiv1.RankReport) error {
		_, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.LeaseResponse, error) {
			return m.Lease(ctx, &apiv1.LeaseRequest{Id: k.id, Session: k.session, Report: r})
		})
		return err
	}
	comes := func(r *apiv1.RankReport, holds func(r *apiv1.RankStatus) bool) {
		t.Helper()
		require.Eventually(t, func() bool {
			require.NoError(t, report(r))
			return holds(get(t, c, "job").Ranks[0])
		}, time.Minute, 5*time.Millisecond, "%v", r)
	}
	comes(&apiv1.RankReport{}, func(r *apiv1.RankStatus) bool { return r.ShareElsewhere > 0 && r.ShareElsewhere < 1 })
	comes(&apiv1.RankReport{Profiling: apiv1.SideOwn}, func(r *apiv1.RankStatus) bool {
		return r.ShareElsewhere == 0 && r.Offload == "the launcher measures the rank's own CPUs"
	})
	comes(&apiv1.RankReport{Profiling: apiv1.SideOthers}, func(r *apiv1.RankStatus) bool {
		return r.ShareElsewhere == 1 && r.Offload == "the launcher measures the other workers"
	})
	profile := &apiv1.OffloadMetrics{Gthp: 1000, Lthp: 1000, Pcycle: 1e-6, Rthp: 1000, Ocycle: 1e-7}
	comes(&apiv1.RankReport{Profile: profile}, func(r *apiv1.RankStatus) bool { return r.ShareElsewhere == 0 })
	// Another profile is another decision.
	profile = &apiv1.OffloadMetrics{Gthp: 1000, Lthp: 10, Pcycle: 1e-6, Rthp: 1000, Ocycle: 1e-9, Tcycle: 1e-3, Cores: 1}
	comes(&apiv1.RankReport{Profile: profile}, func(r *apiv1.RankStatus) bool { return r.ShareElsewhere > 0 })
	err := report(&apiv1.RankReport{Profiling: "both"})
	assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
	assert.ErrorContains(t, err, "both")
}

// TestOwnCPUsAreMeasuredAfterTheLauncher: P of a rank's own worker is not measured while the launcher measures T or its
// profile on the same CPUs.
func TestOwnCPUsAreMeasuredAfterTheLauncher(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	st, k := attachToJob(t, c, &apiv1.JobSpec{Name: "job", Offload: "extended", Epochs: 100,
		Plan: &apiv1.PlanOptions{SplitBatches: 1}})
	w := newWorker(t, "w")
	w.set(func(s *apiv1.NodeStatus) { s.Drives[0].Serves = &apiv1.RankName{Job: st.Id} })
	w.beats(t, c)
	measures := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.measures
	}
	for range 100 { // the launcher measures T, and has not called Lease
		require.Zero(t, measures())
		time.Sleep(5 * time.Millisecond)
	}
	for _, r := range []*apiv1.RankReport{
		{TrainingSeconds: 1},
		{TrainingSeconds: 2, ProfileSeconds: 2, Profiling: apiv1.SideOwn},
		{TrainingSeconds: 3, ProfileSeconds: 3, Profiling: apiv1.SideOthers},
		{TrainingSeconds: 4, ProfileSeconds: 3},
	} {
		report := func() {
			_, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.LeaseResponse, error) {
				return m.Lease(ctx, &apiv1.LeaseRequest{Id: k.id, Session: k.session, Report: r})
			})
			require.NoError(t, err)
		}
		if r.TrainingSeconds == 4 { // the profile has ended
			require.Eventually(t, func() bool { report(); return measures() == 1 }, time.Minute, 5*time.Millisecond)
			continue
		}
		for range 100 {
			report()
			require.Zero(t, measures(), "%v", r)
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// TestAShortJobIsSharedWithoutAMeasurement: the share of a rank's own CPUs is decided when the rank attaches, before
// the leader's first review, by the threads of both sides. P of these CPUs is not measured, if the job takes less than
// five seconds at P of the drive and what follows from it for the own CPUs; of a job that is longer, it is.
func TestAShortJobIsSharedWithoutAMeasurement(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		review time.Duration
		epochs uint64 // of 4,000 rows, at 500 rows/s of the drive's two threads and 1,500 of the own six
		share  float64
		long   bool
	}{
		"before the first review": {review: time.Hour, epochs: 1, share: 0.25},
		"short":                   {epochs: 2, share: 0.25},
		"long":                    {epochs: 3, share: 0.5, long: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := testOptions(t)
			if tc.review > 0 {
				o.ScaleEvery = tc.review
			}
			_, c := start(t, o)
			a := liveNode(t, c, "a", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 4000)}})
			a.p["d"] = 500
			a.set(func(s *apiv1.NodeStatus) { s.Drives[0].Threads = 2 })
			st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", Offload: "extended", Epochs: tc.epochs,
				Plan: &apiv1.PlanOptions{SplitBatches: 4}})
			w := newWorker(t, "w")
			w.p["w"] = 500
			w.set(func(s *apiv1.NodeStatus) {
				s.Drives[0].Serves, s.Drives[0].Threads = &apiv1.RankName{Job: st.Id}, 6
			})
			w.beats(t, c)
			require.Eventually(t, func() bool { return get(t, c, st.Id).Ranks[0].OwnWorkers == 1 }, time.Minute,
				5*time.Millisecond)
			k := attachedRank(t, c, st.Id, 0)
			var r *apiv1.RankStatus
			require.Eventually(t, func() bool {
				_, err := k.lease(0, 0, 0)
				assert.NoError(t, err)
				r = get(t, c, st.Id).Ranks[0]
				return !tc.long || r.ShareElsewhere == tc.share
			}, time.Minute, 5*time.Millisecond, "%v", &r)
			assert.InDelta(t, tc.share, r.ShareElsewhere, 1e-9)
			assert.Equal(t, !tc.long, strings.HasPrefix(r.Offload, "P of the rank's own CPUs is guessed"), r.Offload)
			require.NoError(t, k.consume(0))
			st = until(t, c, st.Id, "done")
			assert.Len(t, k.got, 400*int(tc.epochs))
			w.mu.Lock()
			defer w.mu.Unlock()
			if tc.long {
				assert.Equal(t, 1, w.measures)
				return
			}
			assert.Zero(t, w.measures)
			assert.InDelta(t, (1-tc.share)*100*float64(tc.epochs), st.Ranks[0].SplitsOwn, 5)
		})
	}
}
