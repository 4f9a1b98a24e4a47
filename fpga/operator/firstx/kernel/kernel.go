// Package kernel makes the operator firstx ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/firstx"
)

// Unit is the unit that computes the operator.
const Unit = firstx.Unit

// step keeps the first values of every list.
type step struct {
	kind program.Kind
	keep int64
}

// Compile makes the operator ready.
func Compile(op program.Op, in program.Kind, _ *block.Tables) (block.Step, error) {
	return &step{in, op.(firstx.Op).N}, nil
}

// Run implements block.Step.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	b.OwnValues(v)
	b.OwnLengths(v)
	var kept int
	var err error
	switch s.kind {
	case program.Int64:
		kept, err = unit.FirstX(v.Lengths, v.Int64s, s.keep)
		v.Int64s = v.Int64s[:kept]
	case program.Float32:
		kept, err = unit.FirstX(v.Lengths, v.Float32s, s.keep)
		v.Float32s = v.Float32s[:kept]
	default:
		kept, err = unit.FirstX(v.Lengths, v.Float64s, s.keep)
		v.Float64s = v.Float64s[:kept]
	}
	v.Count = kept
	return err
}
