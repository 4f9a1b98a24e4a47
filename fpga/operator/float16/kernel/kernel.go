// Package kernel makes the operator float16 ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/float16"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/float16"
)

// Unit is the unit that computes the operator.
const Unit = float16.Unit

// step turns strings of two bytes into float32.
type step struct{}

// Compile makes the operator ready.
func Compile(_ program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	return step{}, nil
}

// Run implements block.Step. Nulls stay, in lists, too.
func (step) Run(b *block.Buffers, v *block.Values) error {
	dst := b.FloatDestination(v.Count)
	if v.Count > 0 {
		if err := unit.ToFloat32(dst, v.Offsets, v.Data, v.Valid); err != nil {
			return err
		}
	}
	v.Kind, v.Float32s, v.OwnsValues, v.Offsets, v.Data = program.Float32, dst, true, nil, nil
	return nil
}
