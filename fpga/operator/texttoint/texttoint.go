// Package texttoint is the operator text_to_int: its parameters, and what they may be.
package texttoint

import (
	"github.com/millrace/millrace/fpga/program"
)

// Op reads decimal text, an optional sign and digits, as an int64; an empty text is null.
type Op struct{}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 70

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "text_to_int", Version: 1,
	Read: func(program.Fields) program.Op {
		return Op{}
	},
	In: []string{"bytes"}, Out: "int64",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (Op) Fields(program.Fields) {}

// Check implements [program.Op].
func (Op) Check(program.Input) error { return nil }

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind { return program.KindIf(in, program.Bytes, program.Int64) }
