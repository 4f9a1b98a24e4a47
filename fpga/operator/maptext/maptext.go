// Package maptext is the operator map_text: its parameters, and what they may be.
package maptext

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/millrace/millrace/fpga/program"
)

// Op replaces a text by the value of its key. It takes Bytes and yields Int64.
type Op struct {
	Keys    []string // at least one; UTF-8, ascending by their bytes
	Values  []int64  // Values are in the order of the keys.
	Unknown Unknown
	Default int64 // what other texts become with UnknownDefault, else 0
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 72

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "map_text", Version: 1,
	Read: func(f program.Fields) program.Op {
		o := new(Op)
		o.Fields(f)
		return o
	},
	Args: []string{"keys", "values", "unknown", "default"}, In: []string{"bytes"}, Out: "int64",
}

// Unit implements [program.Op].
func (*Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o *Op) Fields(f program.Fields) {
	f.Texts("keys", &o.Keys)
	f.Integers("values", &o.Values, false)
	f.Choice("unknown", (*uint8)(&o.Unknown), o.Unknown.String())
	f.Reserved(7)
	if f.Shows(o.Unknown == UnknownDefault) {
		f.Int64("default", &o.Default)
	}
}

// Check implements [program.Op].
func (o *Op) Check(in program.Input) error {
	switch n := len(o.Keys); {
	case n == 0 || n > program.MaxTexts:
		return fmt.Errorf("%d texts, want 1 to %d", n, program.MaxTexts)
	case len(o.Values) != n:
		return fmt.Errorf("%d texts and %d values", n, len(o.Values))
	case o.Unknown > UnknownNull:
		return fmt.Errorf("%v is not a rule for texts that the table lacks", o.Unknown)
	case o.Unknown != UnknownDefault && o.Default != 0:
		return errors.New("a default that no text becomes")
	}
	return program.CheckOnce(in, "texts", o.Keys, func() error {
		for i, key := range o.Keys {
			switch {
			case len(key) > program.MaxTextBytes:
				return fmt.Errorf("text %d has %d bytes, want at most %d", i, len(key), program.MaxTextBytes)
			case !utf8.ValidString(key):
				return fmt.Errorf("text %d (%q) is not UTF-8", i, key)
			case i > 0 && key <= o.Keys[i-1]:
				return fmt.Errorf("text %d (%q) is not above the one before", i, key)
			}
		}
		return nil
	})
}

// Out implements [program.Op].
func (*Op) Out(in program.Kind) program.Kind { return program.KindIf(in, program.Bytes, program.Int64) }

// Unknown says what becomes of a text that the table lacks.
type Unknown uint8

// The rules. The numbers are part of the wire form.
const (
	UnknownFails   Unknown = 0 // The text fails the slice.
	UnknownDefault Unknown = 1 // The text becomes Default.
	UnknownNull    Unknown = 2 // The text becomes a null.
)

// String returns the rule's name.
func (u Unknown) String() string {
	switch u {
	case UnknownFails:
		return "fail"
	case UnknownDefault:
		return "default"
	case UnknownNull:
		return "as_null"
	}
	return fmt.Sprintf("unknown(%d)", uint8(u))
}
