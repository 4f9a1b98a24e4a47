package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/trainmgr"
)

// TestTrainReportsItsProfile shares a job between a drive and this machine. The report says which part of the time the
// profile took; a second job of the same model is not profiled, and one with another batch is profiled again. The
// report says how the local side is limited.
func TestTrainReportsItsProfile(t *testing.T) {
	drive, data := filledDrive(t, "4000")
	dir := t.TempDir()
	train := func(extra ...string) *trainmgr.OffloadReport {
		t.Helper()
		args := append([]string{"train", "--pipeline", "rm1", "--batch", "100", "--split-batches", "2", "--drive", drive,
			"--local", data, "--trainer-rows-per-second", "1e6", "--trainer-cpu", "0.5", "--measure", "10ms",
			"--offload-model", "dlrm", "--offload-metrics", filepath.Join(dir, "metrics.json"), "--progress", "none"},
			extra...)
		var report trainmgr.Report
		require.NoError(t, json.Unmarshal([]byte(must(t, append(args, "--output", "json")...)), &report))
		require.EqualValues(t, 4000, report.Rows)
		require.NotNil(t, report.Offload)
		return report.Offload
	}
	first := train()
	assert.False(t, first.Known.Model || first.Known.Pipeline || first.Known.Remote)
	assert.Positive(t, first.ProfileSeconds)
	assert.Greater(t, first.ProfileShare, 0.0)
	assert.Less(t, first.ProfileShare, 1.0)
	if first.LocalRows > 0 {
		assert.Equal(t, "pacing", first.LimitedBy)
		assert.Positive(t, first.LocalLimit)
	} else { // on a busy machine the profile may say that the drive makes everything
		assert.Equal(t, "none", first.LimitedBy)
	}

	second := train()
	assert.True(t, second.Known.Model && second.Known.Pipeline)
	assert.Equal(t, first.Metrics.Gthp, second.Metrics.Gthp) //nolint:testifylint // the very bits of the store
	assert.Equal(t, first.Metrics.Lthp, second.Metrics.Lthp) //nolint:testifylint // the very bits of the store

	batch := train("--batch", "50")
	assert.False(t, batch.Known.Model, "the batch is part of the model's key")
	assert.True(t, train().Known.Model, "the other batch took nothing away")
}
