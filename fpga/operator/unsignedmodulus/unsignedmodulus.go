// Package unsignedmodulus is the operator unsigned_modulus: its parameters, and what they may be.
package unsignedmodulus

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Op is the remainder, in [0, M), of the 64 bits of an id, read as an unsigned number. It takes and yields Int64.
type Op struct {
	M int64
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 73

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "unsigned_modulus", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"m"}, In: []string{"int64"}, Out: "int64",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Int64("modulus", &o.M)
}

// Check implements [program.Op].
func (o Op) Check(program.Input) error {
	if o.M <= 0 {
		return fmt.Errorf("modulus %d, want more than 0", o.M)
	}
	return nil
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind { return program.KindIf(in, program.Int64, program.Int64) }

// ReadsUnsigned returns UnsignedBits: the operator reads the 64 bits of an id.
func (Op) ReadsUnsigned() program.UnsignedUse { return program.UnsignedBits }
