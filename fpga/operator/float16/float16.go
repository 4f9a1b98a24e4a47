// Package float16 is the operator float16: its parameters, and what they may be.
package float16

import (
	"github.com/millrace/millrace/fpga/program"
)

// Op turns an IEEE binary16 of two little-endian bytes into the Float32 of the same value. It is a conversion: in a
// list it leaves null elements to the operators behind it. It takes Bytes and yields Float32.
type Op struct{}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 33

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "float16", Version: 1,
	Read: func(program.Fields) program.Op {
		return Op{}
	},
	In: []string{"bytes"}, Out: "float32",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (Op) Fields(program.Fields) {}

// Check implements [program.Op].
func (Op) Check(program.Input) error { return nil }

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind {
	return program.KindIf(in, program.Bytes, program.Float32)
}
