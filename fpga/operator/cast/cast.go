// Package cast is the operator cast: its parameters, and what they may be.
package cast

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/program"
)

// Op makes numbers of another type of numbers: an int64 of real numbers, whose fractions it drops; the nearest float32
// or float64; the bits of a float64; and an int64 or real numbers of unsigned integers of 64 bits. The operator convert
// rounds as it does, and is put where kinds differ; a pipeline names this one, so that the canonical form has it.
type Op struct {
	To       Target
	Overflow Overflow // What becomes of a number that is not an int64; Fails for other targets.
	From     Source
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 69

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "cast", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"to", "overflow", "from"}, In: []string{"int64", "float32", "float64"}, Out: "number",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Choice("to", (*uint8)(&o.To), o.To.String())
	if f.Shows(o.To == Int64) {
		f.Choice("overflow", (*uint8)(&o.Overflow), o.Overflow.String())
	}
	if f.Shows(o.From != Signed) {
		f.Choice("from", (*uint8)(&o.From), o.From.String())
	}
}

// Check implements [program.Op].
func (o Op) Check(in program.Input) error {
	switch {
	case o.To > Float64Bits:
		return fmt.Errorf("%v is not a type", o.To)
	case o.Overflow > Null || o.Overflow != Fails && o.To != Int64:
		return fmt.Errorf("overflow %v of %v, want one of int64", o.Overflow, o.To)
	case o.From > Unsigned || o.From == Unsigned && in.Kind != program.Int64:
		return fmt.Errorf("%v values of the kind %v, want unsigned integers", o.From, in.Kind)
	}
	return nil
}

// Out implements [program.Op].
func (o Op) Out(in program.Kind) program.Kind {
	unsigned := o.From == Unsigned && in == program.Int64
	switch o.To {
	case Int64:
		if unsigned || in == program.Float32 || in == program.Float64 {
			return program.Int64
		}
	case Float32:
		if in == program.Int64 || in == program.Float64 {
			return program.Float32
		}
	case Float64:
		if in == program.Int64 || in == program.Float32 {
			return program.Float64
		}
	case Float64Bits:
		return program.KindIf(in, program.Float64, program.Int64)
	}
	return 0
}

// ReadsUnsigned returns UnsignedBits if the operator takes unsigned integers.
func (o Op) ReadsUnsigned() program.UnsignedUse {
	if o.From == Unsigned {
		return program.UnsignedBits
	}
	return program.UnsignedNumber
}

// ValuesOf returns what is known of the values: an integer is not a NaN, and a float64 may round to an infinity.
func (o Op) ValuesOf(in program.Kind, v program.Values) program.Values {
	switch {
	case o.From == Unsigned:
		return program.Values{}
	case o.To == Int64:
		return program.Values{Least: math.Trunc(v.Least)}
	case o.To == Float64Bits:
		return program.Values{Least: math.Inf(-1)}
	}
	v.Infinite = v.Infinite || in == program.Float64
	return v
}

// Target is the type that the operator makes.
type Target uint8

// The targets. The numbers are part of the wire form.
const (
	Int64       Target = 0
	Float32     Target = 1
	Float64     Target = 2
	Float64Bits Target = 3 // Float64Bits is the bits of a float64, as an int64.
)

// String returns the target's name.
func (t Target) String() string {
	return nameOf("target", uint8(t), "int64", "float32", "float64", "float64_bits")
}

// Overflow is what becomes of a number that is not an int64.
type Overflow uint8

// The overflows. The numbers are part of the wire form.
const (
	Fails Overflow = 0 // Fails says that the number is an error.
	Null  Overflow = 1 // Null says that the number becomes a null.
)

// String returns the overflow's name.
func (o Overflow) String() string { return nameOf("overflow", uint8(o), "fail", "as_null") }

// Source says how the operator reads integers.
type Source uint8

// The sources. The numbers are part of the wire form.
const (
	Signed   Source = 0 // Signed is numbers of their kind.
	Unsigned Source = 1 // Unsigned is integers whose 64 bits have no sign.
)

// String returns the source's name.
func (s Source) String() string { return nameOf("source", uint8(s), "signed", "unsigned") }

// nameOf returns the name of a number.
func nameOf(what string, n uint8, names ...string) string {
	if int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprintf("%s(%d)", what, n)
}
