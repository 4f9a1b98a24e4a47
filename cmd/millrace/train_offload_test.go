package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/offload"
)

// TestTrainReportsItsProfile shares a job between a drive and this machine. The job is too short for a profile, and the
// report says so, unless a flag asks for one. Then the report says which part of the time the profile took; a second
// job of the same model is not profiled, and one with another batch is profiled again. The report says how the local
// side is limited.
func TestTrainReportsItsProfile(t *testing.T) {
	drive, data := filledDrive(t, "4000")
	dir := t.TempDir()
	train := func(extra ...string) *trainmgr.OffloadReport {
		t.Helper()
		args := append([]string{"train", "--pipeline", "rm1", "--batch", "100", "--split-batches", "2", "--drive",
			drive, "--local", data, "--trainer-rows-per-second", "1e6", "--trainer-cpu", "0.5", "--measure", "10ms",
			"--offload-model", "dlrm", "--offload-metrics", filepath.Join(dir, "metrics.json"), "--progress", "none"},
			extra...)
		var report trainmgr.Report
		require.NoError(t, json.Unmarshal([]byte(must(t, append(args, "--output", "json")...)), &report))
		require.EqualValues(t, 4000, report.Rows)
		require.NotNil(t, report.Offload)
		return report.Offload
	}
	short := train()
	assert.True(t, short.ProfileLeftOut)
	assert.False(t, short.Known.Model, "nothing is kept")
	first := train("--profile-time", "1s")
	assert.False(t, first.ProfileLeftOut)
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
	assert.False(t, second.ProfileLeftOut)
	assert.True(t, second.Known.Model && second.Known.Pipeline)
	assert.Equal(t, first.Metrics.Gthp, second.Metrics.Gthp) //nolint:testifylint // the very bits of the store
	assert.Equal(t, first.Metrics.Lthp, second.Metrics.Lthp) //nolint:testifylint // the very bits of the store

	batch := train("--batch", "50", "--profile-time", "1ms")
	assert.False(t, batch.Known.Model, "the batch is part of the model's key")
	assert.True(t, train().Known.Model, "the other batch took nothing away")
}

// TestTrainChoosesItsCut gives a job drives and an accelerator for what this machine reads: both are measured, the
// report names the cut that is used, and every row comes. Flags that contradict the choice are refused.
func TestTrainChoosesItsCut(t *testing.T) {
	drive, data := filledDrive(t, "4000")
	args := []string{"train", "--pipeline", "rm1", "--batch", "100", "--split-batches", "2",
		"--trainer-rows-per-second", "1e9", "--measure", "10ms", "--progress", "none"}
	both := append(args, "--drive", drive, "--local", data, "--local-accelerator", "mem:")
	var report trainmgr.Report
	require.NoError(t, json.Unmarshal([]byte(must(t, append(both, "--output", "json")...)), &report))
	require.EqualValues(t, 4000, report.Rows)
	if m := report.Offload.Metrics; m.Gthp > m.Lthp { // of a busy machine it may be the other way
		require.Len(t, m.Candidates, 2)
		assert.Equal(t, []offload.Cut{offload.ReadAndTransforms, offload.Transforms},
			[]offload.Cut{m.Candidates[0].Cut, m.Candidates[1].Cut})
		if report.Offload.Decision.Offload {
			assert.Contains(t, report.Offload.Decision.Why, "cut "+report.Offload.Decision.Cut.String())
		}
		assert.Contains(t, must(t, both...), "rows/s with everything offloaded")
	}
	for says, refused := range map[string][]string{
		"files of this machine with --local": append(args, "--drive", drive, "--local-accelerator", "mem:"),
		"a choice beside --drive": append(args, "--in", data, "--local", data, "--accelerator", "mem:",
			"--local-accelerator", "mem:"),
		"fixes a share": append(both, "--offload", "0.5"),
		"URI":           append(args, "--drive", drive, "--local", data, "--local-accelerator", "card"),
	} {
		code, _, errs := millrace(t, refused...)
		assert.Equal(t, 2, code, says)
		assert.Contains(t, errs, says)
	}
}
