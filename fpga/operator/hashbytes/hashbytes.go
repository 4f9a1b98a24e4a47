// Package hashbytes is the operator hash_bytes: its parameters, and what they may be.
package hashbytes

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Op hashes the bytes of a value to an id. It takes Bytes and yields Int64; an empty value has a hash.
type Op struct {
	Function Function
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 14

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "hash_bytes", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"function"}, In: []string{"bytes"}, Out: "int64",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Choice("function", (*uint8)(&o.Function), o.Function.String())
}

// Check implements [program.Op].
func (o Op) Check(program.Input) error {
	if o.Function > FarmHash {
		return fmt.Errorf("%v is not a hash function", o.Function)
	}
	return nil
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind { return program.KindIf(in, program.Bytes, program.Int64) }

// Function is a function that hashes bytes to an id.
type Function uint8

// The hash functions. The numbers are part of the wire form.
const (
	XXH3     Function = 0 // XXH3 of 64 bits
	Murmur3  Function = 1 // Murmur3 of 32 bits, sign-extended, as Spark's hash has it
	FarmHash Function = 2 // FarmHash's Fingerprint64
)

// String returns the function's name as pipelines write it.
func (f Function) String() string {
	switch f {
	case XXH3:
		return "xxh3"
	case Murmur3:
		return "murmur3_32"
	case FarmHash:
		return "farmhash64"
	}
	return fmt.Sprintf("function(%d)", uint8(f))
}
