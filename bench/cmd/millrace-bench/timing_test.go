package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/bench/rm"
	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/timing"
)

// TestTimingOfCommandsWithoutModelledDrives: each refuses all but native and says why.
func TestTimingOfCommandsWithoutModelledDrives(t *testing.T) {
	t.Parallel()
	for name, why := range map[string]string{
		"bench wire": cli.ServedTiming, "bench pipeline": cli.ServiceTiming, "bench service": cli.ServiceTiming,
		"bench roofline": cli.MachineTiming, "bench placement": cli.MachineTiming, "bench operators": cli.MachineTiming,
	} {
		command := strings.Fields(name)
		for _, mode := range []string{"image", "smartssd", "u280"} {
			code, _, errs := millrace(t, append(command, "--timing", mode)...)
			assert.Equal(t, exitUsage, code, name)
			assert.Contains(t, errs, "only native is possible here: "+why, name)
		}
		assert.Contains(t, must(t, append(command, "--timing", "native", "--help")...), "--timing", name)
	}
}

// TestTimingOfBenchRegions: only rates are measured, and PreSto's designs are refused.
func TestTimingOfBenchRegions(t *testing.T) {
	t.Parallel()
	text := must(t, "bench", "regions", "--drive", "mem:?slm=128MiB", "--regions", "2", "--models", "rm1",
		"--rows", "2000", "--time", "1us", "--timing", "image", "--dilate", "5000")
	assert.Contains(t, text, "image, modelled: no board ran; rates are the model's, bound by move")
	assert.Contains(t, text, "rm1 rm1")
	assert.NotContains(t, text, "switch")
	assert.NotContains(t, text, "host I/O")
	code, _, errs := millrace(t, "bench", "regions", "--timing", "smartssd")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, "PreSto's designs have no regions")
}

// TestTimingOfBenchRM: rates are the model's, and what it has no model of is refused.
func TestTimingOfBenchRM(t *testing.T) {
	t.Parallel()
	bench := []string{"bench", "rm", "--models", "rm1", "--rows", "20000", "--time", "1us", "--output", "json"}
	for _, r := range decode[[]rm.Result](t, must(t, append(bench, "--engine", "drive", "--timing", "smartssd",
		"--dilate", "1000")...)) {
		assert.Equal(t, timing.ModeSmartSSD, r.Timing.Timing)
		assert.Greater(t, r.RowsPerSecond, 2e6, "this machine has less")
		assert.Less(t, r.RowsPerSecond, 11.4e6)
	}
	native := must(t, append(bench, "--models", "rm1,criteo-5k")...)
	for _, r := range decode[[]rm.Result](t, native) {
		assert.Equal(t, timing.ModeNative, r.Timing.Timing)
	}
	for says, args := range map[string][]string{
		"rm1 to rm5":        {"--timing", "u280"},
		"states no":         {"--engine", "drive", "--timing", "image"},
		"for modelled time": {"--dilate", "2"},
	} {
		code, _, errs := millrace(t, append(bench, args...)...)
		assert.Equal(t, exitUsage, code, says)
		assert.Contains(t, errs, says)
	}
	code, _, errs := millrace(t, "bench", "rm", "--models", "criteo-tsv", "--rows", "100", "--engine", "drive", "--timing",
		"u280")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, "rm1 to rm5")
}
