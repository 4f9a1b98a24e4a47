// Package texttoseconds is the operator text_to_seconds: its parameters, and what they may be.
package texttoseconds

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Op reads the text of a time as the seconds since 1970-01-01 00:00:00 UTC, rounded towards minus infinity; an empty
// text is null.
type Op struct {
	// Assumes states that a text without an offset from UTC has the offset Offset. Otherwise such a text is an error.
	Assumes bool
	Offset  int64 // In seconds.
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 71

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "text_to_seconds", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"offset"}, In: []string{"bytes"}, Out: "int64",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Bool(&o.Assumes)
	if f.Shows(o.Assumes) {
		f.Int64("offset", &o.Offset)
	}
}

// MaxOffset is the greatest offset in seconds: 23:59.
const MaxOffset = 23*3600 + 59*60

// Check implements [program.Op].
func (o Op) Check(program.Input) error {
	if o.Offset < -MaxOffset || o.Offset > MaxOffset || !o.Assumes && o.Offset != 0 {
		return fmt.Errorf("an offset of %d seconds, want at most %d, and 0 where none is assumed", o.Offset, MaxOffset)
	}
	return nil
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind { return program.KindIf(in, program.Bytes, program.Int64) }
