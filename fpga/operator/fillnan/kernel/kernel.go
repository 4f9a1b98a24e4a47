// Package kernel makes the operator fill_nan ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/fillnan"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/fillnan"
)

// Unit is the unit that computes the operator.
const Unit = fillnan.Unit

// step gives NaNs a value, where they lie.
type step struct {
	kind  program.Kind
	value float64
}

// Compile makes the operator ready.
func Compile(op program.Op, in program.Kind, _ *block.Tables) (block.Step, error) {
	return &step{in, op.(fillnan.Op).Value}, nil
}

// ChangesInPlace implements block.InPlace.
func (s *step) ChangesInPlace() {}

// Run implements block.Step.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	b.OwnValues(v)
	if s.kind == program.Float32 {
		unit.Float32(v.Float32s[:v.Count], float32(s.value))
	} else {
		unit.Float64(v.Float64s[:v.Count], s.value)
	}
	return nil
}
