package csd

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine/profile"
	bucketizeop "github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/timing"
)

// TestWorkOfAnExecution: borders of each column once, and only of columns that ran; values by unit.
func TestWorkOfAnExecution(t *testing.T) {
	bucketize := []program.Op{&bucketizeop.Op{Borders32: make([]float32, 7)}}
	prog := &program.Program{
		Columns: []program.Column{
			{Sinks: []program.Sink{{Ops: bucketize}, {Ops: bucketize}}}, {Part: program.GraphFirst}, {Sinks: []program.Sink{{}}},
			{Sinks: []program.Sink{{Ops: []program.Op{&bucketizeop.Op{Borders64: make([]float64, 100)}}}}},
		},
		Graphs: []program.Graph{{Steps: []program.Step{{Ops: []program.Op{
			&bucketizeop.Op{BordersInt: make([]int64, 1000)}}}}}},
	}
	assert.Equal(t, []uint64{14, 1000, 0, 100}, bordersOf(prog))
	c := newCounters(nil)
	for _, column := range []uint32{0, 0, 1, 2, 3} {
		c.slice.Tasks = append(c.slice.Tasks, program.Task{Column: column})
		c.result.Tasks = append(c.result.Tasks, program.TaskResult{Rows: 5})
	}
	c.result.Tasks[4].Rows, c.result.BytesOut = 0, 77
	var units profile.Profile
	units[program.UnitParquet] = profile.UnitTime{Values: 10, Lengths: 3, Bytes: 52}
	units[bucketizeop.Unit].Values, units[sigridhash.Unit].Values, units[log.Unit].Values = 1, 2, 4
	assert.Equal(t, timing.Work{OutBytes: 77, Decoded: 13, DecodedBytes: 52, Bucketized: 1, Borders: 1014, Hashed: 2,
		Logged: 4}, c.workOf(&programCounter{borders: bordersOf(prog)}, &units))
}

// TestFlashBytesAreCountedOnce: by the execution that ends next.
func TestFlashBytesAreCountedOnce(t *testing.T) {
	var read uint64
	p := &pacing{copied: func() uint64 { return read }}
	for _, c := range []struct {
		read uint64
		want float64
	}{{100, 100}, {100, 0}, {150, 50}} {
		read = c.read
		assert.Equal(t, c.want, p.readFlash())
	}
}

// TestTimingFailsExecutions: of the stock image, which states no parameters.
func TestTimingFailsExecutions(t *testing.T) {
	pacing := timing.NewPacing(timing.ModeImage, 1)
	d := openDrive(t, Options{Size: 1 << 20, Timing: pacing})
	_, m := stockImage(t)
	_, _, err := runVector(t, connect(t, d), m.Spec.SelfTest[0])
	require.Error(t, err)
	require.ErrorContains(t, pacing.Err(), "states no parameters")
	_, err = Open(Options{Diskless: true, Timing: pacing})
	require.ErrorContains(t, err, "this drive has none")
	_, err = Open(Options{Size: 1 << 20, Regions: 2, Timing: timing.NewPacing(timing.ModeSmartSSD, 1)})
	require.ErrorContains(t, err, "PreSto's designs have one region, and this drive has 2")
}
