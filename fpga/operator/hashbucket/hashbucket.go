// Package hashbucket is the operator hash_bucket: its parameters, and what they may be.
package hashbucket

import (
	"github.com/millrace/millrace/fpga/program"
)

// Op hashes an id by SplitMix64's finaliser into [0, Buckets). It takes and yields Int64.
type Op struct {
	Buckets int64
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 53

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "hash_bucket", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"buckets"}, In: []string{"int64"}, Out: "int64",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Int64("buckets", &o.Buckets)
}

// Check implements [program.Op].
func (o Op) Check(program.Input) error {
	return program.CheckBuckets(o.Buckets)
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind { return program.KindIf(in, program.Int64, program.Int64) }

// ReadsUnsigned returns UnsignedBits: the operator reads the 64 bits of an id.
func (Op) ReadsUnsigned() program.UnsignedUse { return program.UnsignedBits }
