// Package kernel makes the operator log ready to run over blocks. The kernel bounds its values in the same pass, so a
// log does the work of a clamp before it, which saves a pass over the values and often a copy.
package kernel

import (
	"math"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/logn"
)

// Unit is the unit that computes the operator.
const Unit = log.Unit

// step replaces float32 values.
type step struct {
	add       float32
	low, high float32 // The bounds to which the values are clamped first.
}

// Compile makes the operator ready.
func Compile(op program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	return &step{add: op.(log.Op).Add, low: float32(math.Inf(-1)), high: float32(math.Inf(1))}, nil
}

// Fuse implements block.Fuser.
func (s *step) Fuse(before block.Step) block.Step {
	if b, ok := before.(block.Float32Bounder); ok {
		if low, high, ok := b.Float32Bounds(); ok {
			return &step{add: s.add, low: low, high: high}
		}
	}
	return nil
}

// Run implements block.Step.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	dst := b.FloatDestination(v.Count)
	unit.LogClamped(dst, v.Float32s[:v.Count], s.add, s.low, s.high)
	v.Float32s, v.OwnsValues = dst, true
	return nil
}
