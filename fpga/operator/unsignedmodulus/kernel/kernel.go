// Package kernel makes the operator unsigned_modulus ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/unsignedmodulus"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/unsignedmodulus"
)

// Unit is the unit that computes the operator.
const Unit = unsignedmodulus.Unit

// step replaces ids by their remainders.
type step struct{ modulus unit.Modulus }

// Compile makes the operator ready.
func Compile(op program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	modulus, err := unit.New(op.(unsignedmodulus.Op).M)
	return &step{modulus}, err
}

// Run implements block.Step.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	dst := b.IntDestination(v.Count)
	s.modulus.Mod(dst, v.Int64s[:v.Count])
	v.Int64s, v.OwnsValues = dst, true
	return nil
}
