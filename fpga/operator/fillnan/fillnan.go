// Package fillnan is the operator fill_nan: its parameters, and what they may be.
package fillnan

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Op replaces a NaN by a finite constant, which is a float32 for Float32. It takes and yields Float32 or Float64.
type Op struct {
	Value float64
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 20

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "fill_nan", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"value"}, In: []string{"float32", "float64"}, Out: "same",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Real("value", &o.Value)
}

// Check implements [program.Op].
func (o Op) Check(in program.Input) error {
	if !program.IsFinite(o.Value) || in.Kind == program.Float32 && !program.IsFloat32(o.Value) {
		return fmt.Errorf("value %v, want a finite number, and a float32 for float32", o.Value)
	}
	return nil
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind {
	if in == program.Int64 {
		return 0
	}
	return program.NumericKind(in)
}

// ValuesOf returns what is known of the values: none is a NaN, and the constant may be among them.
func (o Op) ValuesOf(_ program.Kind, v program.Values) program.Values {
	v.NaN, v.Least = false, min(v.Least, o.Value)
	return v
}

// KeepsUnit reports whether the values count the same thing as before, and they do.
func (Op) KeepsUnit() bool { return true }
