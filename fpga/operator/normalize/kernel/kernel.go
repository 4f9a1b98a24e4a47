// Package kernel makes the operator normalize ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/normalize"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/normalize"
)

// Unit is the unit that computes the operator.
const Unit = normalize.Unit

// step replaces float32 values.
type step struct{ transform *unit.Transform }

// Compile makes the operator ready.
func Compile(op program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	o := op.(normalize.Op)
	transform, err := unit.New(o.Mean, o.Deviation)
	return &step{transform}, err
}

// Run implements block.Step.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	dst := b.FloatDestination(v.Count)
	s.transform.Apply(dst, v.Float32s[:v.Count])
	v.Float32s, v.OwnsValues = dst, true
	return nil
}
