// Package logit is the operator logit: its parameters, and what they may be.
package logit

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Op is the correctly rounded float32 of ln(t / (1 - t)), t a value clamped to [Eps, 1-Eps]; an Eps below 0 clamps
// nothing. It takes and yields Float32.
type Op struct {
	Eps float32
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 11

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "logit", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"eps"}, In: []string{"float32"}, Out: "float32",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Float32("eps", &o.Eps)
}

// Check implements [program.Op].
func (o Op) Check(program.Input) error {
	if !program.IsFinite(float64(o.Eps)) || o.Eps > 0.5 {
		return fmt.Errorf("eps %v, want a finite number of at most 0.5", o.Eps)
	}
	return nil
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind {
	return program.KindIf(in, program.Float32, program.Float32)
}
