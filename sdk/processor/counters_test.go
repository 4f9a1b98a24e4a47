package processor

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
)

// TestCounters counts slices and their results. Impossibly long times in a result block are bounded.
func TestCounters(t *testing.T) {
	var c counters
	c.countTraffic(slicer.Traffic{Planned: 100, Reread: 5}, false)
	c.countTraffic(slicer.Traffic{Planned: 50, Ahead: 20}, true)
	c.countResult(target.Outcome{Wait: 1}, &program.Result{State: program.MoreInput, Wait: 2, BytesIn: 7, Dropped: 3})
	c.countResult(target.Outcome{Move: 4}, &program.Result{Decode: math.MaxUint64, BytesOut: 9})
	c.countHandedOn(&tensor.MiniBatch{Rows: 8}, 140)
	assert.Equal(t, Stats{
		Rows: 8, Fragments: 1, Slices: 2, Reissued: 1, Dropped: 3, BytesPlanned: 150, BytesNeeded: 140, BytesReread: 5,
		BytesStored: 50, BytesAhead: 20, BytesIn: 7, BytesOut: 9, Wait: 3, Move: 4, Decode: time.Duration(math.MaxInt64 / 2),
	}, c.snapshot())
	assert.EqualValues(t, 10, c.snapshot().BytesUnneeded())
	assert.EqualValues(t, 0, Stats{BytesPlanned: 5, BytesNeeded: 6}.BytesUnneeded(), "a few rows in small pages")
}
