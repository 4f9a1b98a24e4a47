// Package bucketize is the operator bucketize: its parameters, and what they may be.
package bucketize

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Op yields the number of the bucket that a value falls into (Int64), 0..len(borders). The kind of the values decides
// how values and borders are compared, and exactly the border list of that kind is set.
type Op struct {
	Side       Side
	NaN        NaN
	Borders32  []float32 // given Float32
	Borders64  []float64 // given Float64
	BordersInt []int64   // given Int64
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 4

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "bucketize", Version: 1,
	Read: func(f program.Fields) program.Op {
		o := new(Op)
		o.Fields(f)
		return o
	},
	Args: []string{"borders", "side", "nan"}, In: []string{"int64", "float32", "float64"}, Out: "int64",
}

// Unit implements [program.Op].
func (*Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o *Op) Fields(f program.Fields) {
	if f.Form() != program.WireForm {
		f.Borders("borders", &o.Borders32, &o.Borders64, &o.BordersInt)
	}
	f.Choice("side", (*uint8)(&o.Side), o.Side.String())
	f.Choice("nan", (*uint8)(&o.NaN), o.NaN.String())
	f.Reserved(2)
	switch f.Form() {
	case program.WireForm:
		f.Borders("borders", &o.Borders32, &o.Borders64, &o.BordersInt)
	case program.CanonicalForm:
		compare := uint8(f.Kind())
		f.Choice("compare", &compare, f.Kind().String())
	}
}

// Check implements [program.Op].
func (o *Op) Check(in program.Input) error {
	lists := 0
	for _, n := range []int{len(o.Borders32), len(o.Borders64), len(o.BordersInt)} {
		if n > 0 {
			lists++
		}
		if n > program.MaxBorders {
			return fmt.Errorf("%d borders, want at most %d", n, program.MaxBorders)
		}
	}
	switch {
	case lists != 1:
		return fmt.Errorf("%d lists of borders, want 1", lists)
	case o.Side > Right:
		return fmt.Errorf("%v is not a side", o.Side)
	case o.NaN > NaNError:
		return fmt.Errorf("%v is not a rule for NaN", o.NaN)
	case len(o.Borders32) > 0:
		return checkOrder(in, o.Borders32)
	case len(o.Borders64) > 0:
		return checkOrder(in, o.Borders64)
	}
	return checkOrder(in, o.BordersInt)
}

// Out implements [program.Op].
func (o *Op) Out(in program.Kind) program.Kind {
	switch {
	case in == program.Float32 && len(o.Borders32) > 0, in == program.Float64 && len(o.Borders64) > 0,
		in == program.Int64 && len(o.BordersInt) > 0:
		return program.Int64
	}
	return 0
}

// checkOrder checks that no border is below its predecessor, or a NaN.
func checkOrder[T int64 | float32 | float64](in program.Input, borders []T) error {
	return program.CheckOnce(in, "borders", borders, func() error {
		for i, b := range borders {
			if b != b || i > 0 && b < borders[i-1] {
				return fmt.Errorf("border %d (%v) is not ordered", i, b)
			}
		}
		return nil
	})
}

// Side is the side of a border on which a value equal to it falls.
type Side uint8

// The sides. The numbers are part of the wire form.
const (
	Left  Side = 0 // lower bound: a value on a border falls into the bucket below it
	Right Side = 1
)

// String returns the side's name as pipelines write it.
func (s Side) String() string {
	switch s {
	case Left:
		return "left"
	case Right:
		return "right"
	}
	return fmt.Sprintf("side(%d)", uint8(s))
}

// NaN says where a NaN goes.
type NaN uint8

// The places of a NaN. The numbers are part of the wire form.
const (
	NaNTorchArrow NaN = 0 // as TorchArrow's code does: bucket 0 with one border, else 1
	NaNFirst      NaN = 1
	NaNLast       NaN = 2
	NaNError      NaN = 3 // the split fails
)

// String returns the rule's name as pipelines write it.
func (n NaN) String() string {
	switch n {
	case NaNTorchArrow:
		return "torcharrow"
	case NaNFirst:
		return "first"
	case NaNLast:
		return "last"
	case NaNError:
		return "error"
	}
	return fmt.Sprintf("nan(%d)", uint8(n))
}
