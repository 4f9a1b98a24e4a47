// Package scores is the operator scores: its parameters, and what they may be.
package scores

import (
	"github.com/millrace/millrace/fpga/program"
)

// Op takes the scores of a list of ids as numbers.
type Op struct{}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 61

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "scores", Version: 1,
	ReadCombiner: func(program.Fields) program.Combiner {
		return Op{}
	},
	In: []string{"int64 and float32"}, Out: "float32",
}

// Unit implements [program.Combiner].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Combiner].
func (Op) Fields(program.Fields) {}

// Check implements [program.Combiner].
func (Op) Check() error { return nil }

// Yield implements [program.Combiner].
func (Op) Yield(inputs []program.ValueType) (program.ValueType, bool) {
	return program.ValueType{Kind: program.Float32, List: true}, len(inputs) == 1 && inputs[0].Scored
}

// WireMinor returns the version of programs that brought lists of ids with scores.
func (Op) WireMinor() uint16 { return 5 }
