// Package rescale is the operator rescale: its parameters, and what they may be.
package rescale

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Op counts an integer in another unit: floor(x * Multiplier / Divisor). Both factors are at least 1, and one of them
// is 1. A product that does not fit int64 fails the slice. It takes and yields Int64.
type Op struct {
	Multiplier, Divisor int64
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 30

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "rescale", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"multiplier", "divisor"}, In: []string{"int64"}, Out: "int64",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Int64("multiplier", &o.Multiplier)
	f.Int64("divisor", &o.Divisor)
}

// Check implements [program.Op].
func (o Op) Check(program.Input) error {
	if o.Multiplier < 1 || o.Divisor < 1 || o.Multiplier > 1 && o.Divisor > 1 {
		return fmt.Errorf("factors %d/%d, want at least 1, and one of them 1", o.Multiplier, o.Divisor)
	}
	return nil
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind { return program.KindIf(in, program.Int64, program.Int64) }
