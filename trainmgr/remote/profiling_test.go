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
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
)

// leastProfiled is how many mini-batches a job has at least that is profiled.
const leastProfiled = 100 * trainmgr.DefaultProfileSteps

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
		if ended, _, _ := j.rank.profiler.Ended(); ended {
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
