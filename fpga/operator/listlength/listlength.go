// Package listlength is the operator list_length.
package listlength

import (
	"github.com/millrace/millrace/fpga/program"
)

// Op counts the elements of a list. A null list, and a list that holds a null, count as empty lists. It takes lists of
// every kind, and yields an Int64 that is never null.
type Op struct{}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 68

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "list_length", Version: 1,
	ReadCombiner: func(program.Fields) program.Combiner {
		return Op{}
	},
	In: []string{"int64", "float32", "float64", "bytes"}, Out: "int64",
}

// Unit implements [program.Combiner].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Combiner].
func (Op) Fields(program.Fields) {}

// Check implements [program.Combiner].
func (Op) Check() error { return nil }

// Yield implements [program.Combiner].
func (Op) Yield(inputs []program.ValueType) (program.ValueType, bool) {
	return program.ValueType{Kind: program.Int64}, len(inputs) == 1 && inputs[0].List
}

// MostElements returns 1, because the operator makes one number of a row.
func (Op) MostElements([]program.Extent) uint64 { return 1 }
