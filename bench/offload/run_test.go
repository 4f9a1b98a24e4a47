package offload

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/offload"
)

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{
		"no command": {},
		"share":      {Command: []string{"x"}, Cores: []float64{1.1}},
		"quota":      {Command: []string{"x"}, TrainerCores: 0.01},
		"drive":      {Command: []string{"x"}, DriveCores: MaxCores + 1},
		"speed":      {Command: []string{"x"}, RowsPerSecond: -1},
		"rows":       {Command: []string{"x"}, Rows: -1},
		"steps":      {Command: []string{"x"}, Steps: MaxSteps + 1},
		"turns":      {Command: []string{"x"}, Turns: MaxTurns + 1},
		"job time":   {Command: []string{"x"}, JobTime: MaxJobTime + 1},
		"measuring":  {Command: []string{"x"}, Measure: -1},
		"timeout":    {Command: []string{"x"}, Timeout: -1},
		"cut":        {Command: []string{"x"}, Cuts: []offload.Cut{offload.None}},
		"slow link":  {Command: []string{"x"}, Bandwidths: []float64{MinBandwidth - 1}},
		"fast link":  {Command: []string{"x"}, Bandwidths: []float64{MaxBandwidth * 2}},
		"no link":    {Command: []string{"x"}, Bandwidths: []float64{math.NaN()}},
	} {
		_, err := Run(t.Context(), o)
		require.ErrorIs(t, err, ErrOptions, name)
	}
}

// TestTheLastThirdCounts: a tuner that finds a better share in the end is judged by that share.
func TestTheLastThirdCounts(t *testing.T) {
	log := ""
	for second, rows := range []int{0, 100, 200, 300, 400, 900, 1400} {
		log += fmt.Sprintf(`{"inputs":{"seconds":%d,"taken_rows":%d}}`+"\n", second, rows)
	}
	path := filepath.Join(t.TempDir(), "log")
	write := func(text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(log)
	rate, ok, err := lateRate(path)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.InDelta(t, 500, rate, 0)
	write(log[:strings.Index(log, "\n")+1])
	_, ok, err = lateRate(path)
	require.NoError(t, err)
	assert.False(t, ok, "one decision")
	write("{")
	_, _, err = lateRate(path)
	require.ErrorContains(t, err, "log of decisions")
	_, _, err = lateRate(path + ".missing")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestTheWaitForTheFirstMiniBatchDoesNotCount checks that jobs of different length are compared without the time in
// which they attach.
func TestTheWaitForTheFirstMiniBatchDoesNotCount(t *testing.T) {
	short := trainmgr.Report{Rows: 1000, ElapsedSeconds: 12, FirstWaitSeconds: 2, RowsPerSecond: 1000. / 12}
	long := trainmgr.Report{Rows: 10_000, ElapsedSeconds: 102, FirstWaitSeconds: 2, RowsPerSecond: 10_000. / 102}
	assert.InDelta(t, 100, rateAfterFirst(&short), 0)
	assert.InDelta(t, 100, rateAfterFirst(&long), 0)
	none := trainmgr.Report{Rows: 10, ElapsedSeconds: 2, FirstWaitSeconds: 2, RowsPerSecond: 5}
	assert.InDelta(t, 5, rateAfterFirst(&none), 0)
}

func TestACommandThatFailsSaysWhy(t *testing.T) {
	_, err := Run(t.Context(), Options{Command: []string{"/bin/sh", "-c", "echo no disk >&2; exit 1"}})
	require.ErrorContains(t, err, "no disk")
	_, err = Run(t.Context(), Options{Command: []string{"/nowhere/millrace"}})
	require.ErrorContains(t, err, "/nowhere/millrace")
	// The shell is killed; the process that it started keeps the output open.
	_, err = Run(t.Context(), Options{Command: []string{"/bin/sh", "-c", "sleep 20; exit 0"},
		Timeout: 100 * time.Millisecond})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Run(ctx, Options{Command: []string{"/bin/sh", "-c", "exec sleep 20"}})
	require.ErrorIs(t, err, context.Canceled)
}
