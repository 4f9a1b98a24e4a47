// Package listslice is the operator list_slice: its parameters, and what they may be.
package listslice

import (
	"errors"
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/program"
)

// Op keeps list[Start:End] of a list, as Python has it: numbers below 0 count from the list's end. If Padded, lists
// that are shorter are filled up at their end to the length of the part, and a null list, or one that holds a null,
// counts as an empty list. PadInt is used for Int64, PadFloat otherwise (exactly representable for Float32). It takes
// lists whose scores are not used.
type Op struct {
	Start, End int64
	Padded     bool
	PadInt     int64
	PadFloat   float64
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 19

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "list_slice", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"start", "end", "pad", "padded"}, In: []string{"int64", "float32", "float64"}, Out: "same",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Int64("start", &o.Start)
	f.Int64("end", &o.End)
	if f.Shows(o.Padded && f.Kind() == program.Int64) {
		f.Int64("pad", &o.PadInt)
	}
	if f.Shows(o.Padded && f.Kind() != program.Int64) {
		f.Real("pad", &o.PadFloat)
	}
	f.Bool(&o.Padded)
	f.Reserved(7)
}

// Check implements [program.Op].
func (o Op) Check(in program.Input) error {
	switch {
	case !in.List:
		return errors.New("takes a list")
	case !o.Padded:
		return nil
	}
	if _, err := o.Length(); err != nil {
		return fmt.Errorf("from %d to %d, padded: %w", o.Start, o.End, err)
	}
	if in.Kind == program.Float32 && !program.IsFloat32(o.PadFloat) {
		return fmt.Errorf("pads with %v, which is not a float32", o.PadFloat)
	}
	return nil
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind { return program.NumericKind(in) }

// MaxLength is the greatest length to which lists are filled up.
const MaxLength = 1024

// NoEnd as the end of a part is the end of the list.
const NoEnd = math.MaxInt64

// Length returns the length of the part in every list that is long enough. The length of a part must not depend on the
// list, and is at most MaxLength.
func (o Op) Length() (int64, error) {
	start, end := o.Start, o.End
	if start < 0 && end == NoEnd {
		end = 0 // behind the last element, which is -1
	} else if (start < 0) != (end < 0) {
		return 0, errors.New("the length of the part depends on the list")
	}
	if end <= start {
		return 0, nil
	}
	if uint64(end)-uint64(start) > MaxLength {
		return 0, fmt.Errorf("a part of more than %d elements", MaxLength)
	}
	return end - start, nil
}

// MovesIDs reports whether scores cannot be matched with the ids. The operator removes ids and not their scores.
func (Op) MovesIDs() bool { return true }

// FillsUpTo returns the length to which the operator fills lists up, or 0 without padding.
func (o Op) FillsUpTo() int64 {
	if !o.Padded {
		return 0
	}
	length, err := o.Length()
	if err != nil {
		return 0 // Check refuses it
	}
	return length
}

// ValuesOf returns what is known of the values: a list may have none.
func (Op) ValuesOf(_ program.Kind, v program.Values) program.Values {
	v.Least = min(v.Least, 0)
	return v
}

// ReadsUnsigned returns UnsignedPass: the operator passes unsigned integers on.
func (Op) ReadsUnsigned() program.UnsignedUse { return program.UnsignedPass }

// MeanElements returns the mean length of the parts of lists of a mean length.
func (o Op) MeanElements(n float64, assume program.Assume) float64 {
	if part, err := o.Length(); err == nil {
		if o.Padded {
			return float64(part)
		}
		// A part that begins further in than the list is long has fewer ids, or none.
		from := float64(max(o.Start, 0))
		if o.Start < 0 {
			from = max(-float64(o.Start)-float64(part), 0) // ids behind the part
		}
		return program.MeanOfCut(float64(part), max(n-from, 0), assume)
	}
	start, end := float64(o.Start), n
	if o.Start < 0 {
		start = max(n+start, 0)
	}
	if o.End != NoEnd {
		end = min(float64(o.End), n)
	}
	if o.End < 0 {
		end = max(n+float64(o.End), 0)
	}
	assume("lists have their mean length where parts of them are kept: list[%d:] of %.4g ids", o.Start, n)
	return max(end-start, 0)
}
