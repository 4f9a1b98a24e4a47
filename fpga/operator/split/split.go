// Package split is the operator split: its parameters, and what they may be.
package split

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/millrace/millrace/fpga/program"
)

// Op makes a list of texts of one text, which it cuts at every Separator: 1 to MaxSeparator bytes of UTF-8. A null is
// an empty list. It takes Bytes and yields lists of Bytes with at most MaxParts elements.
type Op struct {
	Separator string
	Empty     Empty
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 67

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "split", Version: 1,
	ReadCombiner: func(f program.Fields) program.Combiner {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"separator", "empty"}, In: []string{"bytes"}, Out: "bytes",
}

// Unit implements [program.Combiner].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Combiner].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Text("separator", &o.Separator, MaxSeparator)
	f.Choice("empty", (*uint8)(&o.Empty), o.Empty.String())
}

// Check implements [program.Combiner].
func (o Op) Check() error {
	if err := CheckSeparator(o.Separator); err != nil {
		return err
	}
	if o.Empty > KeepEmpty {
		return fmt.Errorf("%v is not a rule for empty parts", o.Empty)
	}
	return nil
}

// Yield implements [program.Combiner].
func (Op) Yield(inputs []program.ValueType) (program.ValueType, bool) {
	ok := len(inputs) == 1 && inputs[0] == program.ValueType{Kind: program.Bytes}
	return program.ValueType{Kind: program.Bytes, List: true}, ok
}

// MostElements returns the greatest length of a list that the operator makes of a text.
func (o Op) MostElements(inputs []program.Extent) uint64 {
	return min(inputs[0].Bytes/uint64(max(len(o.Separator), 1))+1, MaxParts)
}

// meanParts is how many parts a text has on average where nothing is known of the texts.
const meanParts = 2

// MeanElements returns the mean length of what the operator makes of texts.
func (Op) MeanElements(_ []float64, assume program.Assume) float64 {
	assume("split makes %d parts of a text: footers do not say how many separators there are", meanParts)
	return meanParts
}

const (
	// MaxSeparator is the greatest length of a separator in bytes.
	MaxSeparator = 16
	// MaxParts is the greatest number of texts that are made of one.
	MaxParts = 1 << 20
)

// CheckSeparator checks a separator.
func CheckSeparator(separator string) error {
	switch {
	case separator == "" || len(separator) > MaxSeparator:
		return fmt.Errorf("a separator of %d bytes, want 1 to %d", len(separator), MaxSeparator)
	case !utf8.ValidString(separator):
		return errors.New("a separator that is not UTF-8")
	}
	return nil
}

// Empty says what becomes of parts without bytes.
type Empty uint8

// The treatments of empty parts. The numbers are part of the wire form.
const (
	DropEmpty Empty = 0 // Empty parts are left out, so that an empty text is an empty list.
	KeepEmpty Empty = 1 // Empty parts are elements, so that an empty text is a list of one empty text.
)

// String returns the rule's name as pipelines write it.
func (e Empty) String() string {
	switch e {
	case DropEmpty:
		return "drop"
	case KeepEmpty:
		return "keep"
	}
	return fmt.Sprintf("empty(%d)", uint8(e))
}
