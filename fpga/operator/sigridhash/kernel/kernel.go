// Package kernel makes the operator sigrid_hash ready to run over blocks. Where the tensor holds ids of 32 bits, the
// kernel writes them there, and takes the page's checksum of the values in the same pass.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/sigridhash"
)

// Unit is the unit that computes the operator.
const Unit = sigridhash.Unit

// step replaces ids by their hashes.
type step struct{ hasher *unit.Hasher }

// Compile makes the operator ready.
func Compile(op program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	o := op.(sigridhash.Op)
	hasher, err := unit.New(unit.Params{Salt: o.Salt, Max: o.Max})
	return &step{hasher}, err
}

// Run implements block.Step.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	if dst := b.IDs32Destination(); dst != nil && s.hasher.Fits32() {
		if page := b.InputSum; page != nil {
			page.Sum = s.hasher.Hash32Sum(dst, v.Int64s[:v.Count], page.Sum)
			page.Summed += 8 * v.Count
		} else {
			s.hasher.Hash32(dst, v.Int64s[:v.Count])
		}
		v.Int64s, v.InTensor = nil, true
		return nil
	}
	dst := b.IntDestination(v.Count)
	s.hasher.Hash(dst, v.Int64s[:v.Count])
	v.Int64s, v.OwnsValues = dst, true
	return nil
}
