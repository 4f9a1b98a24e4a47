// Package kernel makes the operator fill_null ready to run over blocks.
package kernel

import (
	"math"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/fillnull"
)

// Unit is the unit that computes the operator.
const Unit = fillnull.Unit

// step gives nulls a value, where they lie.
type step struct {
	kind  program.Kind
	int   int64
	float float64
}

// Compile makes the operator ready.
func Compile(op program.Op, in program.Kind, _ *block.Tables) (block.Step, error) {
	o := op.(fillnull.Op)
	return &step{in, o.Int, o.Float}, nil
}

// ChangesInPlace implements block.InPlace.
func (s *step) ChangesInPlace() {}

// FillsZeros implements block.NullFiller.
func (s *step) FillsZeros() bool {
	if s.kind == program.Int64 {
		return s.int == 0
	}
	return math.Float64bits(s.float) == 0
}

// Run implements block.Step. Afterwards v has no nulls.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	b.OwnValues(v)
	switch s.kind {
	case program.Int64:
		unit.Int64(v.Int64s, v.Valid, s.int)
	case program.Float32:
		unit.Float32(v.Float32s, v.Valid, float32(s.float))
	case program.Float64:
		unit.Float64(v.Float64s, v.Valid, s.float)
	}
	v.Valid = nil
	return nil
}
