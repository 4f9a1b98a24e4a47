// Package cartesian is the operator cartesian: its parameters, and what they may be.
package cartesian

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Op makes an id of every pair of an id of the first input and an id of the second, row-major: the hash of SigridHash
// of the second id, with the first as its salt, before the modulus. A scalar is a list of one id. The value is a scalar
// if both inputs are, and a list otherwise. A row makes at most MaxLength ids, 1 to MaxIDs.
type Op struct {
	MaxLength int64
	Overflow  Overflow
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 50

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "cartesian", Version: 1,
	ReadCombiner: func(f program.Fields) program.Combiner {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"max_length", "overflow"}, In: []string{"int64", "int64"}, Out: "int64",
}

// Unit implements [program.Combiner].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Combiner].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Int64("max_length", &o.MaxLength)
	f.Choice("overflow", (*uint8)(&o.Overflow), o.Overflow.String())
}

// Check implements [program.Combiner].
func (o Op) Check() error {
	switch {
	case o.MaxLength < 1 || o.MaxLength > MaxIDs:
		return fmt.Errorf("a length of %d, want 1 to %d", o.MaxLength, MaxIDs)
	case o.Overflow > Fail:
		return fmt.Errorf("%v is not a rule for too many ids", o.Overflow)
	}
	return nil
}

// Yield implements [program.Combiner].
func (Op) Yield(inputs []program.ValueType) (program.ValueType, bool) {
	if len(inputs) != 2 || inputs[0].Kind != program.Int64 || inputs[1].Kind != program.Int64 {
		return program.ValueType{}, false
	}
	return program.ValueType{Kind: program.Int64, List: inputs[0].List || inputs[1].List}, true
}

// MaxIDs is the greatest number of ids that are made of a row.
const MaxIDs = 1 << 16

// MostElements returns the greatest length of a list that the operator makes of one row's inputs.
func (o Op) MostElements(inputs []program.Extent) uint64 {
	return min(inputs[0].Elements*inputs[1].Elements, uint64(o.MaxLength))
}

// Overflow says what becomes of a row of which too many ids would be made.
type Overflow uint8

// The treatments of a row with too many ids. The numbers are part of the wire form.
const (
	Cut  Overflow = 0 // the first ids are kept
	Fail Overflow = 1 // the split fails
)

// String returns the rule's name as pipelines write it.
func (o Overflow) String() string {
	switch o {
	case Cut:
		return "cut"
	case Fail:
		return "fail"
	}
	return fmt.Sprintf("overflow(%d)", uint8(o))
}

// MeanElements returns the mean length of what the operator makes of inputs of mean lengths.
func (o Op) MeanElements(lengths []float64, assume program.Assume) float64 {
	return program.MeanOfCut(float64(o.MaxLength), lengths[0]*lengths[1], assume)
}
