// Package boxcox is the operator box_cox: its parameters, and what they may be.
package boxcox

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Op is the correctly rounded float32 of (t^Lambda1 - 1) / Lambda1, or of ln t where Lambda1 is 0. It takes and yields
// Float32.
type Op struct {
	Lambda1, Lambda2 float32
	Mode             Mode
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 12

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "box_cox", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"lambda1", "lambda2", "mode"}, In: []string{"float32"}, Out: "float32",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Float32("lambda1", &o.Lambda1)
	f.Float32("lambda2", &o.Lambda2)
	f.Choice("mode", (*uint8)(&o.Mode), o.Mode.String())
	f.Reserved(3)
}

// Check implements [program.Op].
func (o Op) Check(program.Input) error {
	switch {
	case !program.IsFinite(float64(o.Lambda1)) || !program.IsFinite(float64(o.Lambda2)):
		return fmt.Errorf("lambda1 %v, lambda2 %v are not finite", o.Lambda1, o.Lambda2)
	case o.Mode > RAP:
		return fmt.Errorf("%v is not a mode", o.Mode)
	case o.Mode == RAP && o.Lambda2 != 0:
		return fmt.Errorf("lambda2 %v with mode rap, which has none", o.Lambda2)
	}
	return nil
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind {
	return program.KindIf(in, program.Float32, program.Float32)
}

// Mode says which number is transformed.
type Mode uint8

// The modes. The numbers are part of the wire form.
const (
	Caffe2 Mode = 0 // max(x + Lambda2, 1e-6)
	RAP    Mode = 1 // x where it is above 0; other values stay, and Lambda2 is 0
)

// String returns the mode's name as pipelines write it.
func (m Mode) String() string {
	switch m {
	case Caffe2:
		return "caffe2"
	case RAP:
		return "rap"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}
