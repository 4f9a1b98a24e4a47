// Package withscores is the operator with_scores: its parameters, and what they may be.
package withscores

import (
	"github.com/millrace/millrace/fpga/program"
)

// Op puts ids, the first input, and their scores together. Scores are as many as the ids of their row, or, of an input
// that is a scalar, one for all of them. A row without ids or without scores is empty.
type Op struct{}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 60

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "with_scores", Version: 1,
	ReadCombiner: func(program.Fields) program.Combiner {
		return Op{}
	},
	In: []string{"int64", "float32"}, Out: "int64 and float32",
}

// Unit implements [program.Combiner].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Combiner].
func (Op) Fields(program.Fields) {}

// Check implements [program.Combiner].
func (Op) Check() error { return nil }

// Yield implements [program.Combiner].
func (Op) Yield(inputs []program.ValueType) (program.ValueType, bool) {
	ok := len(inputs) == 2 && inputs[0].Kind == program.Int64 && inputs[1].Kind == program.Float32
	return program.ValueType{Kind: program.Int64, List: true, Scored: true}, ok
}

// WireMinor returns the version of programs that brought lists of ids with scores.
func (Op) WireMinor() uint16 { return 5 }
