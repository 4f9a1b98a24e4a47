// Package idlisttransform is the operator id_list_transform: its parameters, and what they may be.
package idlisttransform

import (
	"github.com/millrace/millrace/fpga/program"
)

// Op makes the ids of the first input that are in the second, each once, in the order of the first. A scalar is a list
// of one id.
type Op struct{}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 51

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "id_list_transform", Version: 1,
	ReadCombiner: func(program.Fields) program.Combiner {
		return Op{}
	},
	In: []string{"int64", "int64"}, Out: "int64",
}

// Unit implements [program.Combiner].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Combiner].
func (Op) Fields(program.Fields) {}

// Check implements [program.Combiner].
func (Op) Check() error { return nil }

// Yield implements [program.Combiner].
func (Op) Yield(inputs []program.ValueType) (program.ValueType, bool) {
	if len(inputs) != 2 || inputs[0].Kind != program.Int64 || inputs[1].Kind != program.Int64 {
		return program.ValueType{}, false
	}
	return program.ValueType{Kind: program.Int64, List: true}, true
}

// MostElements returns the greatest length of a list that the operator makes of one row's inputs.
func (Op) MostElements(inputs []program.Extent) uint64 {
	return min(inputs[0].Elements, inputs[1].Elements)
}

// MeanElements returns the mean length of the first input.
func (Op) MeanElements(lengths []float64, assume program.Assume) float64 {
	assume("id_list_transform keeps every id of its first input: footers do not say how many are in the second")
	return lengths[0]
}
