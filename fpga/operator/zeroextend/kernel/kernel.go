// Package kernel makes the operator zero_extend ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/zeroextend"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/zeroextend"
)

// Unit is the unit that computes the operator.
const Unit = zeroextend.Unit

// step extends integers where they lie.
type step struct{}

// Compile makes the operator ready.
func Compile(_ program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	return step{}, nil
}

// ChangesInPlace implements block.InPlace.
func (step) ChangesInPlace() {}

// Run implements block.Step.
func (step) Run(b *block.Buffers, v *block.Values) error {
	b.OwnValues(v)
	unit.Int64(v.Int64s)
	return nil
}
