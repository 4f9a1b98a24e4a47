// Package kernel makes the operator clamp ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/clamp"
)

// Unit is the unit that computes the operator.
const Unit = clamp.Unit

// step bounds values where they lie.
type step struct {
	kind                program.Kind
	lowInt, highInt     int64
	lowFloat, highFloat float64
}

// Compile makes the operator ready.
func Compile(op program.Op, in program.Kind, _ *block.Tables) (block.Step, error) {
	o := op.(clamp.Op)
	return &step{in, o.IntLo, o.IntHi, o.FloatLo, o.FloatHi}, nil
}

// ChangesInPlace implements block.InPlace.
func (s *step) ChangesInPlace() {}

// Float32Bounds implements block.Float32Bounder.
func (s *step) Float32Bounds() (low, high float32, ok bool) {
	low, high = float32(s.lowFloat), float32(s.highFloat)
	return low, high, s.kind == program.Float32 && low <= high
}

// Run implements block.Step.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	b.OwnValues(v)
	switch s.kind {
	case program.Int64:
		return unit.Int64(v.Int64s, s.lowInt, s.highInt)
	case program.Float32:
		return unit.Float32(v.Float32s, float32(s.lowFloat), float32(s.highFloat))
	default:
		return unit.Float64(v.Float64s, s.lowFloat, s.highFloat)
	}
}
