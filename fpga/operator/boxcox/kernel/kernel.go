// Package kernel makes the operator box_cox ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/boxcox"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/boxcox"
)

// Unit is the unit that computes the operator.
const Unit = boxcox.Unit

// step replaces float32 values.
type step struct{ transform *unit.Transform }

// Compile makes the operator ready.
func Compile(op program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	o := op.(boxcox.Op)
	params := unit.Params{Lambda1: o.Lambda1, Lambda2: o.Lambda2}
	if o.Mode == boxcox.RAP {
		params.Mode = unit.RAP
	}
	transform, err := unit.New(params)
	return &step{transform}, err
}

// Run implements block.Step.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	dst := b.FloatDestination(v.Count)
	s.transform.Apply(dst, v.Float32s[:v.Count])
	v.Float32s, v.OwnsValues = dst, true
	return nil
}
