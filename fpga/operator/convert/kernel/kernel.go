// Package kernel makes the operator convert ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/convert"
)

// Unit is the unit that computes the operator.
const Unit = convert.Unit

// step changes the kind of values.
type step struct{ from, to program.Kind }

// Compile makes the operator ready.
func Compile(op program.Op, in program.Kind, _ *block.Tables) (block.Step, error) {
	return &step{in, op.(convert.Op).To}, nil
}

// Run implements block.Step.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	switch {
	case s.to == program.Float64 && s.from == program.Float32:
		dst := block.Resize(&b.Float64s, v.Count)
		unit.Float32ToFloat64(dst, v.Float32s[:v.Count])
		v.Float64s = dst
	case s.to == program.Float64:
		dst := block.Resize(&b.Float64s, v.Count)
		unit.Int64ToFloat64(dst, v.Int64s[:v.Count])
		v.Float64s = dst
	case s.from == program.Int64:
		dst := b.FloatDestination(v.Count)
		unit.Int64ToFloat32(dst, v.Int64s[:v.Count])
		v.Float32s = dst
	default:
		dst := b.FloatDestination(v.Count)
		unit.Float64ToFloat32(dst, v.Float64s[:v.Count])
		v.Float32s = dst
	}
	v.Kind, v.OwnsValues = s.to, true
	return nil
}
