// Package normalize is the operator normalize: its parameters, and what they may be.
package normalize

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/program"
)

// Op is the correctly rounded float32 of (x - Mean) / Deviation, or of x - Mean where Deviation is 0. It takes and
// yields Float32.
type Op struct {
	Mean, Deviation float64
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 17

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "normalize", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"mean", "deviation"}, In: []string{"float32"}, Out: "float32",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Float64("mean", &o.Mean)
	f.Float64("deviation", &o.Deviation)
}

// Check implements [program.Op].
func (o Op) Check(program.Input) error {
	if !program.InNormalRange(o.Mean) || !program.InNormalRange(o.Deviation) || o.Deviation < 0 {
		return fmt.Errorf(
			"mean %v, deviation %v: want 0 or normal float32 numbers, the deviation not below 0",
			o.Mean,
			o.Deviation,
		)
	}
	return nil
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind {
	return program.KindIf(in, program.Float32, program.Float32)
}

// ValuesOf returns what is known of the values, which may pass float32.
func (Op) ValuesOf(_ program.Kind, v program.Values) program.Values {
	return program.Values{NaN: v.NaN, Infinite: true, Least: math.Inf(-1)}
}
