// Package mapid is the operator map_id: its parameters, and what they may be.
package mapid

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Op replaces an id by the value of its key, and by Default if no key is the id. Without keys, values are those of the
// ids 0, 1, 2 and so on. It takes and yields Int64.
type Op struct {
	Keys    []int64 // ascending, as many as values; none: the table is dense
	Values  []int64 // at least one
	Default int64
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 16

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "map_id", Version: 1,
	Read: func(f program.Fields) program.Op {
		o := new(Op)
		o.Fields(f)
		return o
	},
	Args: []string{"keys", "values", "default"}, In: []string{"int64"}, Out: "int64",
}

// Unit implements [program.Op].
func (*Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o *Op) Fields(f program.Fields) {
	f.Integers("keys", &o.Keys, true)
	f.Integers("values", &o.Values, false)
	f.Int64("default", &o.Default)
}

// Check implements [program.Op].
func (o *Op) Check(in program.Input) error {
	switch n := len(o.Values); {
	case n == 0 || n > program.MaxBorders:
		return fmt.Errorf("%d values, want 1 to %d", n, program.MaxBorders)
	case len(o.Keys) == 0:
		return nil
	case len(o.Keys) != n:
		return fmt.Errorf("%d keys and %d values", len(o.Keys), n)
	}
	return program.CheckAscent(in, o.Keys, "key")
}

// Out implements [program.Op].
func (*Op) Out(in program.Kind) program.Kind { return program.KindIf(in, program.Int64, program.Int64) }

// ReadsUnsigned returns UnsignedBits: the operator reads the 64 bits of an id.
func (*Op) ReadsUnsigned() program.UnsignedUse { return program.UnsignedBits }
