// Package sigridhash is the operator sigrid_hash: its parameters, and what they may be.
package sigridhash

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Op maps an id into [0, Max).
type Op struct {
	Salt, Max int64
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 5

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "sigrid_hash", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"salt", "max"}, In: []string{"int64"}, Out: "int64",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Int64("salt", &o.Salt)
	f.Int64("max", &o.Max)
}

// Check implements [program.Op].
func (o Op) Check(program.Input) error {
	if o.Max <= 0 {
		return fmt.Errorf("max %d, want more than 0", o.Max)
	}
	return nil
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind { return program.KindIf(in, program.Int64, program.Int64) }

// ReadsUnsigned returns UnsignedBits: the operator reads the 64 bits of an id.
func (Op) ReadsUnsigned() program.UnsignedUse { return program.UnsignedBits }
