// Package enumerate is the operator enumerate: its parameters, and what they may be.
package enumerate

import (
	"github.com/millrace/millrace/fpga/program"
)

// Op gives each id of a list its position as its score, from 0 on. A scalar is a list of one id.
type Op struct{}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 55

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "enumerate", Version: 1,
	ReadCombiner: func(program.Fields) program.Combiner {
		return Op{}
	},
	In: []string{"int64"}, Out: "int64 and float32",
}

// Unit implements [program.Combiner].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Combiner].
func (Op) Fields(program.Fields) {}

// Check implements [program.Combiner].
func (Op) Check() error { return nil }

// Yield implements [program.Combiner].
func (Op) Yield(inputs []program.ValueType) (program.ValueType, bool) {
	ok := len(inputs) == 1 && inputs[0].Kind == program.Int64
	return program.ValueType{Kind: program.Int64, List: true, Scored: true}, ok
}

// WireMinor returns the version of programs that brought lists of ids with scores.
func (Op) WireMinor() uint16 { return 5 }
