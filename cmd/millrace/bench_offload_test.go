package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	bench "github.com/millrace/millrace/bench/offload"
)

// TestBenchOffloadTrains runs the whole of bench offload --real with little data: a drive that is served, trainers in
// processes of their own, a sweep, and both policies.
func TestBenchOffloadTrains(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	self, err := os.Executable()
	require.NoError(t, err)
	results, err := bench.Run(t.Context(), bench.Options{
		Command: []string{self}, Env: []string{asCommand + "=1"}, Cores: []float64{0.3}, Rows: 20_000, Steps: 2,
		TrainerCores: 2, DriveCores: 2, RowsPerSecond: 1e6,
	})
	require.NoError(t, err)
	require.Len(t, results, 1)
	m := results[0]
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
		assert.NotEmpty(t, m.Outcomes[i].Decision.Why)
	}
	if m.Note == "" {
		assert.InDelta(t, 2, m.TrainerQuota, 0)
	} else {
		assert.Zero(t, m.TrainerQuota)
	}
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	assert.Empty(t, left, "the data is gone")
}
