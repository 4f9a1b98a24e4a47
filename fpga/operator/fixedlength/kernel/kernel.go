// Package kernel makes the operator fixed_length ready to run over blocks. The engine checks the lengths of the lists
// and pads them when it writes them to dense.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/fixedlength"
	"github.com/millrace/millrace/fpga/program"
)

// Unit is the unit that computes the operator.
const Unit = fixedlength.Unit

// step leaves values as they are.
type step struct{ length block.RowLength }

// Compile makes the operator ready.
func Compile(op program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	o := op.(fixedlength.Op)
	return &step{block.RowLength{Length: o.Length, Pads: o.Pads, Pad: o.Pad}}, nil
}

// RowLength implements block.RowLengthener.
func (s *step) RowLength() block.RowLength { return s.length }

// Run implements block.Step.
func (s *step) Run(*block.Buffers, *block.Values) error { return nil }
