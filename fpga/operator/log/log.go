// Package log is the operator log: its parameters, and what they may be.
package log

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/program"
)

// Op is the correctly rounded float32 of ln(x + Add), x + Add rounded once in float32. It takes and yields Float32.
type Op struct {
	Add float32
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 3

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "log", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"add"}, In: []string{"float32"}, Out: "float32",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Float32("add", &o.Add)
}

// Check implements [program.Op].
func (o Op) Check(program.Input) error {
	if !program.IsFinite(float64(o.Add)) {
		return fmt.Errorf("add %v is not finite", o.Add)
	}
	return nil
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind {
	return program.KindIf(in, program.Float32, program.Float32)
}

// ValuesOf returns what is known of the values: the logarithm of a negative number is a NaN, and that of 0 infinite.
func (o Op) ValuesOf(_ program.Kind, v program.Values) program.Values {
	x := float32(v.Least) + o.Add
	return program.Values{NaN: v.NaN || !(x >= 0), Infinite: v.Infinite || !(x > 0), Least: math.Inf(-1)}
}
