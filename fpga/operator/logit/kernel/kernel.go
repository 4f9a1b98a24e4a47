// Package kernel makes the operator logit ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/logit"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/logit"
)

// Unit is the unit that computes the operator.
const Unit = logit.Unit

// step replaces float32 values.
type step struct{ bounds unit.Range }

// Compile makes the operator ready.
func Compile(op program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	bounds, err := unit.Bounds(op.(logit.Op).Eps)
	return &step{bounds}, err
}

// Run implements block.Step.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	dst := b.FloatDestination(v.Count)
	s.bounds.Logit(dst, v.Float32s[:v.Count])
	v.Float32s, v.OwnsValues = dst, true
	return nil
}
