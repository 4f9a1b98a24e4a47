// Package kernel makes the operator hex_to_int ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/hextoint"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/hextoint"
)

// Unit is the unit that computes the operator.
const Unit = hextoint.Unit

// step turns hexadecimal tokens into integers.
type step struct{}

// Compile makes the operator ready.
func Compile(_ program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	return step{}, nil
}

// Run implements block.Step. An empty token becomes a null.
func (step) Run(b *block.Buffers, v *block.Values) error { return b.ReadTexts(v, unit.Hex) }
