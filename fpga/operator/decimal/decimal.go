// Package decimal is the operator decimal: its parameters, and what they may be.
package decimal

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/program"
)

// Op turns an unscaled integer n, an Int64 or the bytes of an integer in two's complement, the highest first, into n /
// 10^Scale, rounded once to Float32 or Float64; or, with a scale of 0, bytes into Int64, which fails the slice if n
// does not fit.
type Op struct {
	Scale uint8
	To    program.Kind
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 32

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "decimal", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"scale", "to"}, In: []string{"int64", "bytes"}, Out: "number",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Uint8("scale", &o.Scale)
	f.Choice("to", (*uint8)(&o.To), o.To.String())
}

// Check implements [program.Op].
func (o Op) Check(program.Input) error {
	switch {
	case o.Scale > MaxScale:
		return fmt.Errorf("scale %d, want at most %d", o.Scale, MaxScale)
	case o.To == program.Int64 && o.Scale > 0:
		return fmt.Errorf("scale %d of integers, want 0", o.Scale)
	}
	return nil
}

// MaxScale bounds the scale: 32 bytes have 76 digits.
const MaxScale = 76

// Out implements [program.Op].
func (o Op) Out(in program.Kind) program.Kind {
	switch o.To {
	case program.Float32, program.Float64:
		if in == program.Int64 || in == program.Bytes {
			return o.To
		}
	case program.Int64:
		return program.KindIf(in, program.Bytes, program.Int64)
	}
	return 0
}

// ValuesOf returns what is known of the values: a decimal is never a NaN, and may pass float32.
func (Op) ValuesOf(program.Kind, program.Values) program.Values {
	return program.Values{Infinite: true, Least: math.Inf(-1)}
}
