// Package fixedlength is the operator fixed_length: its parameters, and what they may be.
package fixedlength

import (
	"errors"
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/program"
)

// Op makes Length neighbouring dense columns of a list of Length values, of which the sink's index is the first. It is
// the last operator of a sink that makes a list dense. A list of another length, or a null list, fails the slice; if
// Pads is set, shorter lists are filled up with Pad. It takes and yields Float32.
type Op struct {
	Length uint32
	Pads   bool
	Pad    float32
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 34

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "fixed_length", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"length", "pads", "pad"}, In: []string{"float32"}, Out: "float32",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Uint32("length", &o.Length)
	f.Bool(&o.Pads)
	f.Reserved(3)
	if f.Shows(o.Pads) {
		f.Float32("pad", &o.Pad)
	}
}

// Check implements [program.Op].
func (o Op) Check(in program.Input) error {
	switch {
	case !in.List:
		return errors.New("takes a list")
	case o.Length < 1 || o.Length > program.MaxColumns:
		return fmt.Errorf("length %d, want 1 to %d", o.Length, program.MaxColumns)
	case !program.IsFinite(float64(o.Pad)) || !o.Pads && math.Float32bits(o.Pad) != 0:
		return fmt.Errorf("pad %v", o.Pad)
	}
	return nil
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind {
	return program.KindIf(in, program.Float32, program.Float32)
}

// DenseColumns returns how many neighbouring dense columns the operator makes.
func (o Op) DenseColumns() uint32 { return o.Length }

// EndsLists reports whether the operator takes lists, and it does.
func (Op) EndsLists() bool { return true }

// ValuesOf returns what is known of the values: 0 stands in some places of rows that fail.
func (Op) ValuesOf(_ program.Kind, v program.Values) program.Values {
	v.Least = min(v.Least, 0)
	return v
}
