// Package clamp is the operator clamp: its parameters, and what they may be.
package clamp

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/program"
)

// Op bounds values: v < Lo gives Lo, v > Hi gives Hi; a NaN passes, and so does -0 at a bound of 0.
type Op struct {
	IntLo, IntHi     int64   // for Int64
	FloatLo, FloatHi float64 // for Float32 (exactly representable there) and Float64
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 2

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "clamp", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"min", "max"}, In: []string{"int64", "float32", "float64"}, Out: "same",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	if f.Shows(f.Kind() == program.Int64) {
		f.Int64("min", &o.IntLo)
		f.Int64("max", &o.IntHi)
	}
	if f.Shows(f.Kind() != program.Int64) {
		f.Real("min", &o.FloatLo)
		f.Real("max", &o.FloatHi)
	}
}

// Check implements [program.Op].
func (o Op) Check(in program.Input) error {
	switch {
	case in.Kind == program.Int64 && o.IntLo > o.IntHi:
		return fmt.Errorf("bounds %d > %d", o.IntLo, o.IntHi)
	case in.Kind != program.Int64 && !(o.FloatLo <= o.FloatHi):
		return fmt.Errorf("bounds %v > %v", o.FloatLo, o.FloatHi)
	case in.Kind == program.Float32 && !(program.IsFloat32(o.FloatLo) && program.IsFloat32(o.FloatHi)):
		return fmt.Errorf("bounds %v, %v are not float32", o.FloatLo, o.FloatHi)
	}
	return nil
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind { return program.NumericKind(in) }

// ValuesOf returns what is known of the values: the bounds bound them.
func (o Op) ValuesOf(in program.Kind, v program.Values) program.Values {
	low := o.FloatLo
	if in == program.Int64 {
		low = float64(o.IntLo)
	}
	v.Infinite = v.Infinite && (math.IsInf(o.FloatLo, 0) || math.IsInf(o.FloatHi, 0))
	v.Least = max(v.Least, low)
	return v
}

// KeepsUnit reports whether the values count the same thing as before, and they do.
func (Op) KeepsUnit() bool { return true }
