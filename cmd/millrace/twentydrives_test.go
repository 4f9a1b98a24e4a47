package main

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/bench/capacity"
	"github.com/millrace/millrace/fpga/timing"
)

// TestTwentyModelledDrives: twenty drives with the SmartSSD's timing run in this process. P of half of them is the
// model's within 3 %, P of each within 10 %, and T/P of them run at once. Other work of the machine disturbs single
// drives.
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
	args := []string{"train", "--progress", "none", "--output", "json", "--pipeline", "rm1", "--batch", fmt.Sprint(batch),
		"--in", data, "--spread", fmt.Sprint(drives), "--timing", "smartssd", "--dilate", "500", "--measure", "1ms",
		"--trainer-rows-per-second", fmt.Sprint(ratio * p)}
	var r timedReport
	var off []float64     // by how much of the model's each drive's P is another, in ascending order
	for turn := range 5 { // a busy machine may disturb a measurement
		code, out, errs := millrace(t, args...)
		if code != 0 {
			require.Contains(t, errs, "it is too slow for the model", "turn %d", turn)
			t.Log(errs)
			continue
		}
		r = decode[timedReport](t, out)
		off = off[:0]
		for _, d := range r.PerDrive {
			off = append(off, math.Abs(d.RowsPerSecond/p-1))
		}
		slices.Sort(off)
		t.Logf("turn %d: P of the model %.0f rows/s, of a drive at most %.1f %% off; T/P wants %d drives; %v", turn, p,
			100*off[drives-1], r.DrivesWanted, r.Timing)
		if off[drives/2] <= 0.03 && off[drives-1] <= 0.1 && r.DrivesWanted == int(math.Ceil(ratio)) {
			break
		}
	}
	require.Len(t, r.PerDrive, drives)
	assert.LessOrEqual(t, off[drives/2], 0.03)
	for _, d := range r.PerDrive {
		assert.InEpsilon(t, p, d.RowsPerSecond, 0.1, d.Name)
		assert.EqualValues(t, 16*batch, d.Rows, d.Name)
	}
	assert.Equal(t, int(math.Ceil(ratio)), r.Drives)
	assert.Equal(t, int(math.Ceil(ratio)), r.DrivesWanted)
	assert.Equal(t, int(math.Ceil(ratio)), r.DrivesBusiest)
	assert.Zero(t, r.ExpectedStallSecond)
	assert.Equal(t, timing.StageMove, r.Timing.Bound)
	assert.Less(t, r.Timing.HostShare, 1.0)
}
