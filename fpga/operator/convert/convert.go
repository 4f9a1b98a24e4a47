// Package convert is the operator convert: its parameters, and what they may be.
package convert

import (
	"github.com/millrace/millrace/fpga/program"
)

// Op changes the kind of a value: Int64 to Float32 or Float64, Float64 to Float32, Float32 to Float64, each to the
// nearest, ties to even. Pipelines do not write it: lowering puts it where kinds differ.
type Op struct {
	To program.Kind
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 10

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "convert", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"to"}, In: []string{"int64", "float32", "float64"}, Out: "float",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Choice("to", (*uint8)(&o.To), o.To.String())
}

// Check implements [program.Op].
func (Op) Check(program.Input) error { return nil }

// Out implements [program.Op].
func (o Op) Out(in program.Kind) program.Kind {
	switch {
	case o.To == program.Float32 && (in == program.Int64 || in == program.Float64),
		o.To == program.Float64 && (in == program.Int64 || in == program.Float32):
		return o.To
	}
	return 0
}

// ValuesOf returns what is known of the values: a float64 may round to an infinity.
func (Op) ValuesOf(in program.Kind, v program.Values) program.Values {
	v.Infinite = v.Infinite || in == program.Float64
	return v
}
