// Package onehot is the operator onehot: its parameters, and what they may be.
package onehot

import (
	"errors"
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/program"
)

// Op makes Classes neighbouring dense columns of a scalar, of which the sink's index is the first: 1 for the class of
// the value, and 0 for the others. It is the last operator of a dense sink. The class of an Int64 is its number, and
// what is not a class, as a null, has none. With Ranges it takes Float32: the class is the part of the range from Lower
// to Upper, both included, that holds the value, and class 0 if none does; a null has none. It yields Float32.
type Op struct {
	Classes      uint32
	Ranges       bool
	Lower, Upper float32 // 0 without Ranges
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 56

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "onehot", Version: 2,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"classes", "ranges", "lower", "upper"}, In: []string{"int64", "float32"}, Out: "float32",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Uint32("classes", &o.Classes)
	f.Bool(&o.Ranges)
	f.Reserved(3)
	if f.Shows(o.Ranges) {
		f.Float32("lower", &o.Lower)
		f.Float32("upper", &o.Upper)
	}
}

// Check implements [program.Op].
func (o Op) Check(in program.Input) error {
	step := (o.Upper - o.Lower) / float32(max(o.Classes, 1))
	switch {
	case in.List:
		return errors.New("takes one value a row, and not a list")
	case o.Classes < 1 || o.Classes > MaxClasses:
		return fmt.Errorf("%d classes, want 1 to %d", o.Classes, MaxClasses)
	case !o.Ranges && math.Float32bits(o.Lower)|math.Float32bits(o.Upper) != 0:
		return fmt.Errorf("bounds %v and %v of ids", o.Lower, o.Upper)
	case o.Ranges && !(program.IsFinite(float64(o.Lower)) && program.IsFinite(float64(step)) && step > 0):
		return fmt.Errorf(
			"a range from %v to %v, want finite numbers that ascend, and classes of some width",
			o.Lower,
			o.Upper,
		)
	}
	return nil
}

// MaxClasses is the greatest number of classes.
const MaxClasses = 4096

// Out implements [program.Op].
func (o Op) Out(in program.Kind) program.Kind {
	if o.Ranges {
		return program.KindIf(in, program.Float32, program.Float32)
	}
	return program.KindIf(in, program.Int64, program.Float32)
}

// DenseColumns returns how many neighbouring dense columns the operator makes.
func (o Op) DenseColumns() uint32 { return o.Classes }

// EndsLists reports whether the operator takes lists. It takes one value a row.
func (Op) EndsLists() bool { return false }

// ValuesOf returns that the values are 0 and 1.
func (Op) ValuesOf(program.Kind, program.Values) program.Values { return program.Values{} }
