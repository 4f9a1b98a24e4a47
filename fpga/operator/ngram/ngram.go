// Package ngram is the operator ngram: its parameters, and what they may be.
package ngram

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Op replaces a list by the ids of its windows of N consecutive ids, 1 to MaxN. It takes lists of Int64 whose scores
// are not used, and yields such lists. A chain has at most one with the mode RAP.
type Op struct {
	N    int64 // a uint32 on the wire
	Mode Mode
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 13

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "ngram", Version: 1,
	Read: func(f program.Fields) program.Op {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"n", "mode"}, In: []string{"int64"}, Out: "int64",
}

// Unit implements [program.Op].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Op].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	n := uint32(o.N)
	f.Uint32("n", &n)
	o.N = int64(n)
	if f.Shows(o.Mode != Fold) {
		f.Choice("mode", (*uint8)(&o.Mode), o.Mode.String())
	}
	f.Reserved(3)
}

// Check implements [program.Op].
func (o Op) Check(in program.Input) error {
	switch {
	case o.N < 1 || o.N > MaxN:
		return fmt.Errorf("n %d, want 1 to %d", o.N, MaxN)
	case o.Mode > RAP:
		return fmt.Errorf("%v is not a mode", o.Mode)
	case !in.List:
		return errors.New("takes a list")
	}
	return nil
}

// Out implements [program.Op].
func (Op) Out(in program.Kind) program.Kind { return program.KindIf(in, program.Int64, program.Int64) }

// MaxN is the greatest length of windows.
const MaxN = 16

// MaxIDs is the greatest number of ids that the mode RAP makes of a list.
const MaxIDs = 1 << 20

// Mode says what is made of the windows of a list.
type Mode uint8

// The modes. The numbers are part of the wire form.
const (
	// Fold makes one id of each window, folded by SigridHash's hash. A list of less than N ids has no window.
	Fold Mode = 0
	// RAP lists the ids of all windows, one window behind the other, as RAP does. In a list of less than N ids the only
	// window is the list itself. A list may have MaxIDs ids at most afterwards.
	RAP Mode = 1
)

// String returns the mode's name as pipelines write it.
func (m Mode) String() string {
	switch m {
	case Fold:
		return "fold"
	case RAP:
		return "rap"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// MovesIDs reports whether scores cannot be matched with the ids. The operator makes an id of several ids.
func (Op) MovesIDs() bool { return true }

// OncePerChain returns why the mode RAP may stand only once in a chain: each multiplies the ids of a list.
func (o Op) OncePerChain() string {
	if o.Mode == RAP {
		return "mode rap"
	}
	return ""
}

// MostElements returns the greatest length of a list that the operator makes of a list of n ids.
func (o Op) MostElements(n uint64) uint64 {
	if o.Mode == RAP {
		return min(n*uint64(o.N), MaxIDs)
	}
	return n
}

// WireMinor returns the version of programs that brought the mode RAP.
func (o Op) WireMinor() uint16 {
	if o.Mode != Fold {
		return 6
	}
	return 0
}

// ReadsUnsigned returns UnsignedBits: the operator reads the 64 bits of an id.
func (Op) ReadsUnsigned() program.UnsignedUse { return program.UnsignedBits }

// MeanElements returns the mean length of what the operator makes of lists of a mean length.
func (o Op) MeanElements(n float64, assume program.Assume) float64 {
	windows := max(n-float64(o.N)+1, 0)
	if o.N > 1 {
		assume("lists have their mean length where ngram counts windows: %.4g ids make %.4g windows of %d", n, windows, o.N)
	}
	if o.Mode == RAP {
		return max(windows, min(n, 1)) * min(float64(o.N), max(n, 1))
	}
	return windows
}
