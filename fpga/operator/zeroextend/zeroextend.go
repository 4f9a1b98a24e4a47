// Package zeroextend is the operator zero_extend: its parameters, and what they may be.
package zeroextend

import (
	"github.com/millrace/millrace/fpga/program"
)

// Op re-reads an id as its low 32 bits, unsigned.
type Op struct{}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 8

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "zero_extend", Version: 1,
	Read: func(program.Fields) program.Op {
		return Op{}
	},
	In: []string{"int64"}, Out: "int64",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (Op) Fields(program.Fields) {}

// Check implements [program.Op].
func (Op) Check(program.Input) error { return nil }

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind { return program.KindIf(in, program.Int64, program.Int64) }

// ReadsUnsigned returns UnsignedBits: the operator reads the 64 bits of an id.
func (Op) ReadsUnsigned() program.UnsignedUse { return program.UnsignedBits }
