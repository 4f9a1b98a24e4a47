// Package kernel makes the operator text_to_int ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/texttoint"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/texttoint"
)

// Unit is the unit that computes the operator.
const Unit = texttoint.Unit

// step turns decimal texts into integers.
type step struct{}

// Compile makes the operator ready.
func Compile(_ program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	return step{}, nil
}

// Run implements block.Step. An empty text becomes a null.
func (step) Run(b *block.Buffers, v *block.Values) error { return b.ReadTexts(v, unit.Integers) }
