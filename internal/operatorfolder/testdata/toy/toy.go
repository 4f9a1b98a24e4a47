// Package toy is the operator toy: its parameters, and what they may be.
package toy

import (
	"errors"

	"github.com/millrace/millrace/fpga/program"
)

// Op multiplies an id and adds a number, modulo 2^64.
type Op struct{ Times, Plus int64 }

// Unit is the number of the unit on the wire.
const Unit program.Unit = 127

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "toy", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"times", "plus"}, In: []string{"int64"}, Out: "int64",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Int64("times", &o.Times)
	f.Int64("plus", &o.Plus)
}

// Check implements [program.Op].
func (o Op) Check(program.Input) error {
	if o.Times == 0 {
		return errors.New("times is 0")
	}
	return nil
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind { return program.KindIf(in, program.Int64, program.Int64) }
