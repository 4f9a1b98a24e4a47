// Package int96time is the operator int96_time: its parameters, and what they may be.
package int96time

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Op turns a Parquet INT96 timestamp of 12 bytes into the time since 1970-01-01, rounded towards minus infinity. It
// takes Bytes and yields Int64.
type Op struct {
	To TimeUnit
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 31

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "int96_time", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"to"}, In: []string{"bytes"}, Out: "int64",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Choice("to", (*uint8)(&o.To), o.To.String())
}

// Check implements [program.Op].
func (o Op) Check(program.Input) error {
	if o.To > Days {
		return fmt.Errorf("%v is not a unit of time", o.To)
	}
	return nil
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind { return program.KindIf(in, program.Bytes, program.Int64) }

// TimeUnit is what a time counts.
type TimeUnit uint8

// The units of time. The numbers are part of the wire form.
const (
	Seconds TimeUnit = 0
	Days    TimeUnit = 1
)

// String returns the unit's name.
func (u TimeUnit) String() string {
	switch u {
	case Seconds:
		return "seconds"
	case Days:
		return "days"
	}
	return fmt.Sprintf("unit(%d)", uint8(u))
}
