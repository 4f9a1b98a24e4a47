package steering

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control/record"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/offload"
)

// TestASessionOfTheSameRunKeepsTheShare: a session that ends leaves its counts to the next one of its run, so that the
// tuner sees no step back. The counts, the tuner and the profile of another run are dropped.
func TestASessionOfTheSameRunKeepsTheShare(t *testing.T) {
	t.Parallel()
	report := &apiv1.RankReport{StallSeconds: 1, Own: &apiv1.SideReport{Rows: 10, BusySeconds: 2},
		Others: &apiv1.SideReport{Rows: 30, BusySeconds: 4}}
	j := New(Terms{Spec: &apiv1.JobSpec{Ranks: 1}})
	k := &j.launchers[0]
	*k = launcher{division: &division{}, profile: &apiv1.OffloadMetrics{Gthp: 1}, report: report}
	j.Attached(0, true)
	require.NotNil(t, k.division)
	assert.NotNil(t, k.profile)
	assert.Nil(t, k.report)
	want := sideCounts{stall: 1, ownRows: 10, ownBusy: 2, othersRows: 30, othersBusy: 4}
	assert.Equal(t, want, k.division.former)
	assert.Equal(t, want, k.division.former.plus(nil), "the next session has reported nothing")
	k.report = report
	j.Attached(0, true)
	assert.Equal(t, sideCounts{stall: 2, ownRows: 20, ownBusy: 4, othersRows: 60, othersBusy: 8}, k.division.former)
	assert.InDelta(t, 2, j.StallSeconds(0), 0)
	j.Attached(0, false)
	assert.Nil(t, k.division)
	assert.Nil(t, k.profile)
}

// TestTheTunersClockStandsStillWhileARankIsDetached: an hour between two sessions does not count as an hour in which
// the job made nothing.
func TestTheTunersClockStandsStillWhileARankIsDetached(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Terms{ID: "x", BatchRows: 10, Spec: &apiv1.JobSpec{Ranks: 1},
		Offload: record.Offload{Shares: true, Policy: offload.Extended}})
	w.do([]string{"worker", "w/w", "serves=0", "p=100"})
	w.do([]string{"rank", "0", "attached", "own=1"})
	w.step(time.Second)
	w.step(2 * time.Second)
	w.do([]string{"rank", "0", "attached=0"})
	w.step(time.Second)
	w.do([]string{"attach", "0", "same"})
	w.do([]string{"rank", "0", "attached"})
	w.step(time.Hour)
	w.step(3 * time.Second)
	assert.InDelta(t, 5, w.job.launchers[0].division.seconds, 1e-9)
}

// TestOtherWorkersThatWereNotMeasured: a launcher whose trainer hardly waits does not measure the other workers. The
// policy takes them at their P, and knows that they are there.
func TestOtherWorkersThatWereNotMeasured(t *testing.T) {
	t.Parallel()
	m := metricsOfProfile(&apiv1.OffloadMetrics{Gthp: 1000, Lthp: 950, Pcycle: 1e-3, Tcycle: 1e-4, Cores: 1}, 990, 600)
	require.Equal(t, []offload.Candidate{{Cut: offload.All, Rthp: 600, Supply: 600}}, m.Candidates)
	d, err := offload.Decide(offload.Extended, *m)
	require.NoError(t, err)
	assert.True(t, d.Offload, d.Why)
	assert.Empty(t, metricsOfProfile(&apiv1.OffloadMetrics{Gthp: 1000, Lthp: 950}, 990, 0).Candidates)
}
