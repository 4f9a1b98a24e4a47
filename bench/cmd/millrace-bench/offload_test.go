package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/bench/cluster/clustertest"
	bench "github.com/millrace/millrace/bench/offload"
	"github.com/millrace/millrace/trainmgr/offload"
)

// TestBenchOffloadTrains runs the whole of bench offload --real with little data: at each cut the workers in processes
// of their own, trainers in others, a sweep, and both policies; then one cut over a link of limited bandwidth, where a
// network namespace is permitted.
func TestBenchOffloadTrains(t *testing.T) {
	program := clustertest.Program(t)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	o := bench.Options{
		Command: program.Command, Cores: []float64{0.3}, Rows: 4_000, Steps: 2,
		Turns: 1, TrainerCores: 2, DriveCores: 2, RowsPerSecond: 1e6, JobTime: 50 * time.Millisecond,
		Measure: 10 * time.Millisecond,
	}
	results, err := bench.Run(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, results, 3)
	for i, cut := range []offload.Cut{offload.Transforms, offload.ReadAndTransforms, offload.All} {
		assert.Equal(t, cut, results[i].Cut)
		checkMeasured(t, results[i])
	}
	o.Cuts, o.Bandwidths, o.Steps, o.Turns = []offload.Cut{offload.ReadAndTransforms}, []float64{20e6}, 1, 2
	notes := ""
	o.Progress = func(line string) { notes += line + "\n" }
	results, err = bench.Run(t.Context(), o)
	require.NoError(t, err)
	if len(results) == 0 {
		assert.Contains(t, notes, "a link of limited bandwidth is not permitted here")
	} else {
		assert.InDelta(t, 20e6, results[0].Bandwidth, 0)
		require.Len(t, results[0].Sweep, 2)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Cores, o.Bandwidths, o.Turns = []float64{0.3, 0.7}, nil, 1
	o.Progress = func(line string) {
		if strings.Contains(line, "uses 0.7 of a CPU") {
			cancel()
		}
	}
	results, err = bench.Run(ctx, o)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, results, 1, "what was measured before")
	assert.InDelta(t, 0.3, results[0].TrainerCPU, 0)
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	assert.Empty(t, left, "the data is gone")
}

// checkMeasured checks the measurements of one trainer at one cut.
func checkMeasured(t *testing.T, m bench.Measured) {
	t.Helper()
	require.Len(t, m.Sweep, 3)
	for i, p := range m.Sweep {
		assert.InDelta(t, float64(i)/2, p.Ratio, 0)
		assert.Positive(t, p.RowsPerSecond)
		assert.LessOrEqual(t, p.RowsPerSecond, m.Best.RowsPerSecond)
	}
	require.Len(t, m.Outcomes, 2)
	for i, policy := range []string{"extended", "paper"} {
		assert.Equal(t, policy, m.Outcomes[i].Policy)
		assert.Positive(t, m.Outcomes[i].RowsPerSecond)
		assert.NotEmpty(t, m.Outcomes[i].Decision.Why, "%v", m.Cut)
		assert.Equal(t, m.Cut != offload.All, m.Outcomes[i].Metrics != nil, "%v", m.Cut)
	}
	assert.GreaterOrEqual(t, m.BestOfCuts, 0.0)
	assert.Zero(t, m.Bandwidth)
	if m.Note == "" {
		assert.InDelta(t, 2, m.TrainerQuota, 0)
	} else {
		assert.Zero(t, m.TrainerQuota)
	}
}

func TestBenchOffloadRefuses(t *testing.T) {
	for _, args := range [][]string{{"--cuts", "none"}, {"--cuts", "half"}, {"--bandwidth", "fast"}, {"--bandwidth", "0"},
		{"--bandwidth", "1KB"}, {"--rows", "-1"}, {"--job-time", "-1s"}} {
		code, _, errs := millrace(t, append([]string{"bench", "offload", "--real"}, args...)...)
		assert.Equal(t, exitUsage, code, "%q: %s", args, errs)
	}
}
