// Package getlocalhour is the operator get_local_hour: its parameters, and what they may be.
package getlocalhour

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/program"
)

// Op yields the hour of the day, 0 to 23, of a time in seconds since 1970-01-01 00:00:00 UTC, at a place whose clocks
// are Offsets[i] seconds ahead of UTC from Starts[i] on. Starts begins with the least int64 and ascends. It takes and
// yields Int64.
type Op struct {
	Starts, Offsets []int64
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 15

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "get_local_hour", Version: 1,
	Read: func(f program.Fields) program.Op {
		o := new(Op)
		o.Fields(f)
		return o
	},
	Args: []string{"times", "offsets"}, In: []string{"int64"}, Out: "int64",
}

// Unit implements [program.Op].
func (*Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o *Op) Fields(f program.Fields) {
	f.Integers("from", &o.Starts, false)
	f.Integers("offsets", &o.Offsets, false)
}

// Check implements [program.Op].
func (o *Op) Check(in program.Input) error {
	n := len(o.Starts)
	switch {
	case n == 0 || n > MaxChanges:
		return fmt.Errorf("%d times, want 1 to %d", n, MaxChanges)
	case len(o.Offsets) != n:
		return fmt.Errorf("%d times and %d offsets", n, len(o.Offsets))
	case o.Starts[0] != math.MinInt64:
		return fmt.Errorf("the first time is %d, want the least int64", o.Starts[0])
	}
	if err := program.CheckAscent(in, o.Starts, "time"); err != nil {
		return err
	}
	return program.CheckOnce(in, "offsets", o.Offsets, func() error {
		for i, offset := range o.Offsets {
			if offset < -MaxOffset || offset > MaxOffset {
				return fmt.Errorf("offset %d is %d seconds, want less than a day", i, offset)
			}
		}
		return nil
	})
}

// Out implements [program.Op].
func (*Op) Out(in program.Kind) program.Kind { return program.KindIf(in, program.Int64, program.Int64) }

// MaxChanges is the greatest number of offsets.
const MaxChanges = 4096

// MaxOffset is the greatest distance of a zone's clocks from UTC, in seconds: less than a day.
const MaxOffset = 24*60*60 - 1
