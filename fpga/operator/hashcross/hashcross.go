// Package hashcross is the operator hash_cross: its parameters, and what they may be.
package hashcross

import (
	"github.com/millrace/millrace/fpga/program"
)

// Op hashes one id of each of 2 to program.MaxInputs inputs together into [0, Buckets): the exclusive or of their
// hashes, which are those of hash_bucket. It takes scalars of Int64 and yields one, which is null if an input is.
type Op struct {
	Buckets int64
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 52

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "hash_cross", Version: 1,
	ReadCombiner: func(f program.Fields) program.Combiner {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"buckets"}, In: []string{"int64", "int64"}, Out: "int64",
}

// Unit implements [program.Combiner].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Combiner].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Int64("buckets", &o.Buckets)
}

// Check implements [program.Combiner].
func (o Op) Check() error {
	return program.CheckBuckets(o.Buckets)
}

// Yield implements [program.Combiner].
func (Op) Yield(inputs []program.ValueType) (program.ValueType, bool) {
	for _, in := range inputs {
		if in.Kind != program.Int64 || in.List {
			return program.ValueType{}, false
		}
	}
	return program.ValueType{Kind: program.Int64}, len(inputs) >= 2
}
