package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/timing"
)

// TestTimingOfPreprocess: the output is that of native timing, and the report names the timing. On a machine that is
// slower than the model, the command fails: it removes the output, and its error names the dilation that is needed.
func TestTimingOfPreprocess(t *testing.T) {
	t.Parallel()
	data := generate(t, "--rows", "3000")
	tensors := func(how ...string) (timing.Report, map[string]string) {
		out := filepath.Join(t.TempDir(), "out")
		text := must(t, append([]string{"preprocess", "--progress", "none", "--output", "json", "--pipeline", "rm1",
			"--batch", "500", "--in", data, "--out", out}, how...)...)
		return decode[preprocessResult](t, text).Timing, content(t, out)
	}
	native, want := tensors()
	assert.Equal(t, timing.Report{Timing: timing.ModeNative, Dilate: 1}, native)
	modelled, got := tensors("--timing", "smartssd", "--dilate", "10000")
	assert.Equal(t, want, got)
	assert.Equal(t, timing.Report{Timing: timing.ModeSmartSSD, Modelled: true, Dilate: 10000, Bound: timing.StageMove,
		HostShare: modelled.HostShare}, modelled)
	assert.Positive(t, modelled.HostShare)
	out := filepath.Join(t.TempDir(), "out")
	code, _, errs := millrace(t, "preprocess", "--progress", "none", "--pipeline", "rm1", "--in", data, "--out", out,
		"--timing", "smartssd")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "it is too slow for the model")
	assert.Contains(t, errs, "--dilate ")
	_, err := os.Stat(out)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// TestTimingOfTrain: T, P and the elapsed time are on the clock of the drives.
func TestTimingOfTrain(t *testing.T) {
	t.Parallel()
	data := generate(t, "--rows", "600")
	args := []string{"train", "--progress", "none", "--output", "json", "--pipeline", "rm1", "--batch", "100",
		"--in", data, "--measure", "200us", "--trainer-rows-per-second", "1e6"}
	r := decode[timedReport](t, must(t, append(args, "--timing", "u280", "--dilate", "10000")...))
	assert.EqualValues(t, 600, r.Rows)
	assert.Equal(t, timing.ModeU280, r.Timing.Timing)
	assert.Less(t, r.ElapsedSeconds, 0.1, "a second of the model is hours: 600 rows take 0.6 ms of the trainer's time")
	assert.GreaterOrEqual(t, r.ElapsedSeconds, 600/1e6)
	assert.Greater(t, r.PRowsPerSecond, 1e6, "this machine has less under load; the model has more")
	code, _, errs := millrace(t, append(args, "--timing", "image")...)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "states no parameters")
	assert.NotContains(t, errs, "retry")
}

// TestTimingRefused: each with what to do.
func TestTimingRefused(t *testing.T) {
	t.Parallel()
	data := generate(t, "--rows", "10")
	for says, args := range map[string][]string{
		"want native, image, smartssd or u280": {"--in", data, "--timing", "fast"},
		"--dilate is for modelled times":       {"--in", data, "--dilate", "2"},
		"--dilate 10001":                       {"--in", data, "--timing", "u280", "--dilate", "10001"},
		"--dilate 0":                           {"--in", data, "--timing", "u280", "--dilate", "0"},
		"the machine's time":                   {"--control", "http://127.0.0.1:1", "--timing", "u280"},
		"--local":                              {"--in", data, "--local", data, "--timing", "u280"},
	} {
		code, _, errs := millrace(t, append([]string{"train", "--pipeline", "rm1"}, args...)...)
		assert.Equal(t, exitUsage, code, says)
		assert.Contains(t, errs, says)
	}
	for says, args := range map[string][]string{
		"computes on what lies on its own flash": {"--in", data, "--engine", "cpu"},
		"is for drives of this process":          {"--drive", "tcp://127.0.0.1:1/nqn.2026-01.dev.millrace:d0"},
	} {
		out := filepath.Join(t.TempDir(), "out")
		code, _, errs := millrace(t, append([]string{"preprocess", "--pipeline", "rm1", "--timing", "u280", "--out", out},
			args...)...)
		require.Equal(t, exitFailed, code, says)
		assert.Contains(t, errs, says)
	}
}

// TestTimingOfCommandsWithoutModelledDrives: each takes native, refuses the others and says why. native with a control
// plane is not an error of the flag.
func TestTimingOfCommandsWithoutModelledDrives(t *testing.T) {
	t.Parallel()
	for name, why := range map[string]string{
		"drive serve": cli.ServedTiming,
		"node run":    cli.ServiceTiming, "worker run": cli.ServiceTiming, "control run": cli.ServiceTiming,
		"jobs submit": cli.ServiceTiming, "up": cli.ServiceTiming,
	} {
		command := strings.Fields(name)
		for _, mode := range []string{"image", "smartssd", "u280"} {
			code, _, errs := millrace(t, append(command, "--timing", mode)...)
			assert.Equal(t, exitUsage, code, name)
			assert.Contains(t, errs, "only native is possible here: "+why, name)
		}
		code, _, errs := millrace(t, append(command, "--timing", "fast")...)
		assert.Equal(t, exitUsage, code, name)
		assert.Contains(t, errs, "want native, image, smartssd or u280", name)
		assert.Contains(t, must(t, append(command, "--timing", "native", "--help")...), "--timing", name)
	}
	code, _, errs := millrace(t, "drive", "serve", "--timing", "native")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, "--flash is wanted")
	_, _, errs = millrace(t, "train", "--pipeline", "rm1", "--control", "http://127.0.0.1:1", "--timing", "native")
	assert.NotContains(t, errs, "--timing")
}
