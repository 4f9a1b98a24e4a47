package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAutoscaleOverRegions: a job over the regions of a served drive begins with T/P of them, takes the others since
// its trainer is faster than was measured, and reports it.
func TestAutoscaleOverRegions(t *testing.T) {
	data := generate(t, "--rows", "4000", "--partitions", "1")
	path := t.TempDir() + "/d0.flash"
	must(t, "drive", "create", "file:"+path+"?size=64MiB", "--regions", "3")
	must(t, "drive", "put", "file:"+path, data+"/part-00000.parquet")
	line, _ := startServe(t, "--flash", path, "--slm", "384MiB")
	args := []string{"train", "--progress", "none", "--pipeline", "rm1", "--batch", "100", "--split-batches", "2",
		"--epochs", "4", "--measure", "10ms", "--trainer-rows-per-second", "1e7", "--max-drives", "2",
		"--autoscale", "2ms", "--in", "part-00000.parquet"}
	uri := strings.TrimSuffix(strings.Fields(line)[1], ":")
	for region := range 3 {
		args = append(args, "--drive", fmt.Sprintf("%s?region=%d", uri, region))
	}
	r := decode[timedReport](t, must(t, append(args, "--output", "json")...))
	assert.EqualValues(t, 4*4000, r.Rows)
	require.NotNil(t, r.Autoscale)
	assert.Positive(t, r.Autoscale.Decisions)
	assert.Equal(t, 2, r.Autoscale.Most)
	assert.Len(t, r.PerDrive, 3)
	assert.Contains(t, must(t, args...), "autoscaler")
}

// TestAutoscaleRefused: with what to do.
func TestAutoscaleRefused(t *testing.T) {
	t.Parallel()
	data := generate(t, "--rows", "10")
	for says, args := range map[string][]string{
		"--autoscale 0s":           {"--in", data, "--autoscale", "0s"},
		"--autoscale -1s":          {"--in", data, "--autoscale", "-1s"},
		"a control plane":          {"--control", "http://127.0.0.1:1", "--autoscale", "1s"},
		"leave one of the two out": {"--in", data, "--local", data, "--autoscale", "1s"},
	} {
		code, _, errs := millrace(t, append([]string{"train", "--pipeline", "rm1"}, args...)...)
		assert.Equal(t, exitUsage, code, says)
		assert.Contains(t, errs, says)
	}
	r := decode[timedReport](t, must(t, "train", "--progress", "none", "--output", "json", "--pipeline", "rm1", "--batch",
		"10", "--measure", "1ms", "--in", data))
	assert.Nil(t, r.Autoscale, "the number is fixed")
}
