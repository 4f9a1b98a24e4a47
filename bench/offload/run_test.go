package offload

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
