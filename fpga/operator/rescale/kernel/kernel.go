// Package kernel makes the operator rescale ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/rescale"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/rescale"
)

// Unit is the unit that computes the operator.
const Unit = rescale.Unit

// step counts integers in another unit.
type step struct{ multiplier, divisor int64 }

// Compile makes the operator ready.
func Compile(op program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	o := op.(rescale.Op)
	return &step{o.Multiplier, o.Divisor}, unit.CheckFactors(o.Multiplier, o.Divisor)
}

// Run implements block.Step.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	dst := b.IntDestination(v.Count)
	err := unit.Rescale(dst, v.Int64s[:v.Count], v.Valid, s.multiplier, s.divisor)
	v.Int64s, v.OwnsValues = dst, true
	return err
}
