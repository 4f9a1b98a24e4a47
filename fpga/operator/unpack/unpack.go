// Package unpack is the operator unpack: its parameters, and what they may be.
package unpack

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Op makes a list of numbers of the bytes of an array. A null is an empty list. It takes Bytes and yields lists of
// Float32.
type Op struct{ Type Type }

// Unit is the number of the unit on the wire.
const Unit program.Unit = 74

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "unpack", Version: 1,
	ReadCombiner: func(f program.Fields) program.Combiner {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"element"}, In: []string{"bytes"}, Out: "float32",
}

// Unit implements [program.Combiner].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Combiner].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Choice("element", (*uint8)(&o.Type), o.Type.String())
}

// Check implements [program.Combiner].
func (o Op) Check() error {
	if o.Type != Float32 {
		return fmt.Errorf("%v is not a type of packed numbers", o.Type)
	}
	return nil
}

// Yield implements [program.Combiner].
func (Op) Yield(inputs []program.ValueType) (program.ValueType, bool) {
	ok := len(inputs) == 1 && inputs[0] == program.ValueType{Kind: program.Bytes}
	return program.ValueType{Kind: program.Float32, List: true}, ok
}

// numberBytes is the size of a packed number.
const numberBytes = 4

// MostElements returns the greatest length of a list that the operator makes of a value.
func (Op) MostElements(inputs []program.Extent) uint64 { return inputs[0].Bytes / numberBytes }

// Type is the type of packed numbers.
type Type uint8

// The types. The numbers are part of the wire form.
const (
	Float32 Type = 1 // IEEE 754, four bytes, little-endian
)

// String returns the type's name as pipelines write it.
func (t Type) String() string {
	if t == Float32 {
		return "float32"
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}
