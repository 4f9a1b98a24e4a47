// Package firstx is the operator firstx: its parameters, and what they may be.
package firstx

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Op keeps the first N elements of a list.
type Op struct {
	N int64
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 9

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "firstx", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"n"}, In: []string{"int64", "float32", "float64"}, Out: "same",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Int64("n", &o.N)
}

// Check implements [program.Op].
func (o Op) Check(in program.Input) error {
	switch {
	case o.N < 0:
		return fmt.Errorf("n %d, want at least 0", o.N)
	case !in.List:
		return errors.New("takes a list")
	}
	return nil
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind { return program.NumericKind(in) }

// MostElements returns the length of the list that the operator makes of a list of n elements.
func (o Op) MostElements(n uint64) uint64 { return min(n, uint64(max(o.N, 0))) }

// ValuesOf returns what is known of the values: a list may have none.
func (Op) ValuesOf(_ program.Kind, v program.Values) program.Values {
	v.Least = min(v.Least, 0)
	return v
}

// KeepsUnit reports whether the values count the same thing as before, and they do.
func (Op) KeepsUnit() bool { return true }

// ReadsUnsigned returns UnsignedPass: the operator passes unsigned integers on.
func (Op) ReadsUnsigned() program.UnsignedUse { return program.UnsignedPass }

// MeanElements returns the mean length of what the operator makes of lists of a mean length.
func (o Op) MeanElements(n float64, assume program.Assume) float64 {
	return program.MeanOfCut(float64(o.N), n, assume)
}
