package timing

import (
	"fmt"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
)

// OfImage returns the device that a board is under an image: the board's bandwidths, and clock, units, chaining and
// double buffers of the image's parameters. A unit without parameters is one that the device lacks.
func OfImage(board Device, p *image.Parameters) Device {
	d := board
	d.ClockHz = 1e3 * float64(p.Clock.Value)
	d.Overlap, d.Chained = p.Buffers.Value == 2, p.Chained.Value == 1
	d.Decode, d.Bucketize, d.Hash, d.Log = Elements{}, Elements{}, Elements{}, Elements{}
	for i := range p.Units {
		u := &p.Units[i]
		e := Elements{Count: int(u.Elements.Value), Lanes: int(u.Lanes.Value), Interval: int(u.Interval.Value),
			Latency: int(u.Latency.Value)}
		switch program.Unit(u.Unit) {
		case program.UnitParquet:
			d.Decode = e
		case bucketize.Unit:
			d.Bucketize = e
		case sigridhash.Unit:
			d.Hash = e
		case log.Unit:
			d.Log = e
		default: // the model knows no stage of it: its elements keep up with their neighbours'
		}
	}
	return d
}

// CheckWork returns an error if the device lacks a unit that the work needs.
func (d Device) CheckWork(w Work) error {
	for _, s := range []struct {
		unit   program.Unit
		values float64
		count  int
	}{
		{program.UnitParquet, w.Decoded, d.Decode.Count}, {bucketize.Unit, w.Bucketized, d.Bucketize.Count},
		{sigridhash.Unit, w.Hashed, d.Hash.Count}, {log.Unit, w.Logged, d.Log.Count},
	} {
		if s.values > 0 && s.count == 0 {
			return fmt.Errorf("timing: the workload has values for unit %s (number %d), and the device has no elements of "+
				"it: state the unit in the image's parameters", s.unit, uint16(s.unit))
		}
	}
	return nil
}
