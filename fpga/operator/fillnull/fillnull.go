// Package fillnull is the operator fill_null: its parameters, and what they may be.
package fillnull

import (
	"github.com/millrace/millrace/fpga/program"
)

// Op replaces a null value (in a list: a null element) by a constant. Int is used for Int64, Float otherwise (rounded
// to float32 for Float32).
type Op struct {
	Int   int64
	Float float64
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 1

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "fill_null", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"value"}, In: []string{"int64", "float32", "float64"}, Out: "same",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	if f.Shows(f.Kind() == program.Int64) {
		f.Int64("value", &o.Int)
	}
	if f.Shows(f.Kind() != program.Int64) {
		f.Real("value", &o.Float)
	}
}

// Check implements [program.Op].
func (Op) Check(program.Input) error { return nil }

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind { return program.NumericKind(in) }

// ValuesOf returns what is known of the values with the constant among them.
func (o Op) ValuesOf(in program.Kind, v program.Values) program.Values {
	constant := o.Float
	if in == program.Int64 {
		constant = float64(o.Int)
	}
	v.Least = min(v.Least, constant)
	return v
}

// KeepsUnit reports whether the values count the same thing as before, and they do.
func (Op) KeepsUnit() bool { return true }

// ReadsUnsigned returns UnsignedPass: the operator passes unsigned integers on.
func (Op) ReadsUnsigned() program.UnsignedUse { return program.UnsignedPass }
