package main

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/capacity/review"
)

// assumption returns an assumption of a comparison.
func assumption(t *testing.T, v *review.Review, name string) review.Assumption {
	t.Helper()
	for _, a := range v.Assumptions {
		if a.Name == name {
			return a
		}
	}
	require.FailNow(t, "nothing is said of "+name)
	return review.Assumption{}
}

// TestPlanBesideAJob trains a small job on a drive, and compares a plan of it with its report. What is exact must
// agree: the bytes of tensors. How fast this machine is decides which assumption comes first.
func TestPlanBesideAJob(t *testing.T) {
	data := generate(t, "--rows", "4096", "--partitions", "2", "--coverage", "1")
	job := must(t, "train", "--pipeline", "rm1", "--batch", "512", "--in", data, "--engine", "drive", "--measure",
		"1ms", "--trainer-rows-per-second", "100k", "--output", "json", "--progress", "none")
	trained := decode[timedReport](t, job)
	require.NotNil(t, trained.Energy)
	report := file(t, "report.json", job)
	args := []string{"plan", "--pipeline", "rm1", "--in", data, "--from-job", report}
	v := decode[review.Review](t, must(t, append(args, "--t", "50k", "--output", "json")...))
	assert.Equal(t, "drives", v.Workers)
	assert.Equal(t, trained.Job, v.Job)
	assert.InEpsilon(t, 1, assumption(t, &v, "bytes of a row's tensors").Ratio, 1e-6)
	assert.InEpsilon(t, 1, assumption(t, &v, "bytes read of a row").Ratio, 0.05)
	p, rate := assumption(t, &v, "P"), assumption(t, &v, "T")
	assert.InEpsilon(t, trained.PRowsPerSecond, p.Ran, 1e-9)
	assert.InEpsilon(t, trained.TRowsPerSecond/50e3, rate.Ratio, 1e-9)
	assert.True(t, slices.IsSortedFunc(v.Assumptions, func(a, b review.Assumption) int {
		moved := func(a review.Assumption) float64 { return math.Abs(math.Log(a.Then / v.Planned)) }
		return cmp.Compare(moved(b), moved(a))
	}))
	require.NotNil(t, v.Power)
	assert.Equal(t, trained.Energy.Kind, v.Power.RanKind)
	require.Len(t, v.Links, len([]string{"flash", "trainers"})+fetched(&trained))

	out := must(t, args...)
	for _, want := range []string{"assumption ", "give --t, or --gpus, as it was planned", "bytes read of a row",
		"flash to device memory", "to the trainers"} {
		assert.Contains(t, out, want)
	}
	cpu := must(t, "train", "--pipeline", "rm1", "--in", data, "--engine", "cpu", "--measure", "1ms", "--output",
		"json", "--trainer-rows-per-second", "100k", "--progress", "none")
	cores := decode[review.Review](t, must(t, "plan", "--pipeline", "rm1", "--in", data, "--t", "50k", "--output",
		"json", "--from-job", file(t, "cpu.json", cpu)))
	assert.Equal(t, "cores", cores.Workers)
}

// fetched counts the link from device memory to the host, which drives that lend their tensors do not use.
func fetched(r *timedReport) int {
	for _, d := range r.PerDrive {
		if d.BytesFetched > 0 {
			return 1
		}
	}
	return 0
}

// TestPlanBesideAJobOfAService: the control plane knows T, P and drives.
func TestPlanBesideAJobOfAService(t *testing.T) {
	drive, data := filledDrive(t, "2000")
	at := controlRun(t)
	serveDrive(t, at, drive)
	must(t, "train", "--control", at, "--pipeline", "rm1", "--name", "ads", "--measure", "1ms",
		"--trainer-rows-per-second", "100k", "--output", "json", "--progress", "none")
	v := decode[review.Review](t, must(t, "plan", "--pipeline", "rm1", "--in", data, "--t", "50k", "--control", at,
		"--job", "ads", "--output", "json"))
	assert.Equal(t, "the control plane", v.From)
	assert.Len(t, v.Assumptions, 2)
	assert.Positive(t, assumption(t, &v, "P").Ran)
	assert.Positive(t, assumption(t, &v, "T").Ran)
	assert.Contains(t, v.NotCompared, "watts: the job's report has none")
}

func TestRefusedReviews(t *testing.T) {
	job := `{"job": "7a", "rows": 5, "elapsed_seconds": 1, "p_rows_per_second": 3,
		"per_drive": [{"engine": "drive (vendor)", "rows": 5}]}`
	report := file(t, "report.json", job)
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{exitUsage, "--output html is of a plan", []string{"--from-job", report, "--output", "html"}},
		{exitUsage, "did not measure T", []string{"--from-job", report}},
		{exitUsage, "give --pipeline with --in", []string{"--from-job", report, "--model", "ads", "--t", "5"}},
		{exitFailed, "read the job's report", []string{"--from-job", filepath.Join(t.TempDir(), "none.json")}},
		{exitFailed, "names no job", []string{"--from-job", file(t, "a.json", `{}`)}},
		{exitFailed, "is not what millrace train", []string{"--from-job", file(t, "a.json", `[]`)}},
		{exitFailed, "has trained 0 rows", []string{"--from-job", file(t, "a.json", `{"job": "7a"}`)}},
	} {
		code, _, stderr := millrace(t, append([]string{"plan"}, c.args...)...)
		assert.Equal(t, c.code, code, c.says)
		errorLine(t, stderr, c.says)
	}
	must(t, "plan", "--from-job", report, "--model", "rm1", "--t", "5")
}
