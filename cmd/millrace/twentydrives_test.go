package main

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/capacity"
	"github.com/millrace/millrace/fpga/timing"
)

// TestTwentyModelledDrives: twenty drives with the SmartSSD's timing run in this process. P of each is the model's
// within 3 %, and T/P of them run at once.
func TestTwentyModelledDrives(t *testing.T) {
	const (
		drives = 20
		batch  = 512
		ratio  = 7.5 // T/P
	)
	data := generate(t, "--model", "rm1", "--coverage", "1", "--rows", fmt.Sprint(drives*16*batch), "--partitions",
		fmt.Sprint(drives))
	row, err := capacity.CostOfRow("rm1", 8)
	require.NoError(t, err)
	p := timing.SmartSSD().Batch(row, batch).RowsPerSecond(false)
	args := []string{"train", "--progress", "none", "--output", "json", "--pipeline", "rm1", "--batch",
		fmt.Sprint(batch), "--in", data, "--spread", fmt.Sprint(drives), "--timing", "smartssd", "--measure", "1ms",
		"--trainer-rows-per-second", fmt.Sprint(ratio * p)}
	var r timedReport
	// A busy machine may disturb a measurement. A delay counts less if the modelled drives are slower, so later turns
	// have slower drives.
	for turn, dilate := range []string{"500", "500", "1000", "1000", "2000", "4000", "8000"} {
		code, out, errs := millrace(t, append(args, "--dilate", dilate)...)
		if code != 0 {
			require.Contains(t, errs, "it is too slow for the model", "turn %d", turn)
			t.Log(errs)
			continue
		}
		r = decode[timedReport](t, out)
		worst := 0.0
		for _, d := range r.PerDrive {
			worst = max(worst, math.Abs(d.RowsPerSecond/p-1))
		}
		t.Logf("turn %d: P of the model %.0f rows/s, of a drive at most %.1f %% off; T/P wants %d drives; %v", turn, p,
			100*worst, r.DrivesWanted, r.Timing)
		if worst <= 0.03 && r.DrivesWanted == int(math.Ceil(ratio)) {
			break
		}
	}
	require.Len(t, r.PerDrive, drives)
	for _, d := range r.PerDrive {
		assert.InEpsilon(t, p, d.RowsPerSecond, 0.03, d.Name)
		assert.EqualValues(t, 16*batch, d.Rows, d.Name)
	}
	assert.Equal(t, int(math.Ceil(ratio)), r.Drives)
	assert.Equal(t, int(math.Ceil(ratio)), r.DrivesWanted)
	assert.Equal(t, int(math.Ceil(ratio)), r.DrivesBusiest)
	assert.Zero(t, r.ExpectedStallSecond)
	assert.Equal(t, timing.StageMove, r.Timing.Bound)
	assert.Less(t, r.Timing.HostShare, 1.0)
}
