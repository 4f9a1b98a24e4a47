// Package minmax is the operator min_max: its parameters, and what they may be.
package minmax

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/program"
)

// Op is the correctly rounded float32 of (x - Min) / (Max - Min), or of x / 2x where both are one number. It takes and
// yields Float32.
type Op struct {
	Min, Max float64
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 18

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "min_max", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"min", "max"}, In: []string{"float32"}, Out: "float32",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Float64("min", &o.Min)
	f.Float64("max", &o.Max)
}

// Check implements [program.Op].
func (o Op) Check(program.Input) error {
	if !program.InNormalRange(o.Min) || !program.InNormalRange(o.Max) || o.Max < o.Min {
		return fmt.Errorf("from %v to %v: want 0 or normal float32 numbers that do not descend", o.Min, o.Max)
	}
	return nil
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind {
	return program.KindIf(in, program.Float32, program.Float32)
}

// ValuesOf returns what is known of the values: x / 2x of 0 is a NaN.
func (o Op) ValuesOf(_ program.Kind, v program.Values) program.Values {
	return program.Values{NaN: v.NaN || o.Min == o.Max, Infinite: true, Least: math.Inf(-1)}
}
