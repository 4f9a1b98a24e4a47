// Package vocabulary is the operator vocabulary: its parameters, and what they may be.
package vocabulary

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Op replaces a key by Base plus its index in a lookup table. It takes and yields Int64.
type Op struct {
	Table   uint32 // index of Program.LookupTables
	Absent  Absent
	Buckets uint32 // AbsentBucket: at least 1
	Base    int64
	Rare    int64 // AbsentRare
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 58

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "vocabulary", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"table", "absent", "buckets", "base", "rare"}, In: []string{"int64"}, Out: "int64",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Uint32("table", &o.Table)
	f.Choice("absent", (*uint8)(&o.Absent), o.Absent.String())
	f.Reserved(3)
	if f.Shows(o.Absent == AbsentBucket) {
		f.Uint32("buckets", &o.Buckets)
	}
	f.Reserved(4)
	f.Int64("base", &o.Base)
	if f.Shows(o.Absent == AbsentRare) {
		f.Int64("rare", &o.Rare)
	}
}

// Check implements [program.Op].
func (o Op) Check(program.Input) error {
	switch {
	case o.Absent > AbsentBucket:
		return fmt.Errorf("%d is not a way to treat an absent key", uint8(o.Absent))
	case o.Base < 0 || o.Base > maxBase:
		return fmt.Errorf("base %d, want 0 to %d", o.Base, int64(maxBase))
	case o.Absent != AbsentRare && o.Rare != 0:
		return fmt.Errorf("rare id %d, and no key gets it", o.Rare)
	case o.Absent == AbsentBucket && (o.Buckets == 0 || int64(o.Buckets) > o.Base):
		return fmt.Errorf("%d buckets below base %d", o.Buckets, o.Base)
	case o.Absent != AbsentBucket && o.Buckets != 0:
		return fmt.Errorf("%d buckets, and no key gets one", o.Buckets)
	}
	return nil
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind { return program.KindIf(in, program.Int64, program.Int64) }

const maxBase = 1 << 40

// Absent says what becomes of a key that a lookup table lacks.
type Absent uint8

// The ways to treat an absent key. The numbers are part of the wire form.
const (
	AbsentFail   Absent = 0 // the slice fails, and Result.AbsentKey names the key
	AbsentRare   Absent = 1 // the key becomes Rare
	AbsentBucket Absent = 2 // the key becomes one of Buckets ids: Base - Buckets + SigridHash{0, Buckets} of it
)

// String returns the treatment's name.
func (a Absent) String() string {
	switch a {
	case AbsentFail:
		return "fail"
	case AbsentRare:
		return "rare"
	case AbsentBucket:
		return "bucket"
	}
	return fmt.Sprintf("absent(%d)", uint8(a))
}

// LookupTable returns the index of the lookup table.
func (o Op) LookupTable() uint32 { return o.Table }

// ReadsUnsigned returns UnsignedBits: the operator reads the 64 bits of an id.
func (Op) ReadsUnsigned() program.UnsignedUse { return program.UnsignedBits }
