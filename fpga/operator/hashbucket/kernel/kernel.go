// Package kernel makes the operator hash_bucket ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/hashbucket"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/hashcross"
)

// Unit is the unit that computes the operator.
const Unit = hashbucket.Unit

// step replaces ids by the numbers of their buckets.
type step struct{ hasher unit.Hasher }

// Compile makes the operator ready.
func Compile(op program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	hasher, err := unit.New(op.(hashbucket.Op).Buckets)
	return &step{hasher}, err
}

// Run implements block.Step.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	dst := b.IntDestination(v.Count)
	s.hasher.Buckets(dst, v.Int64s[:v.Count])
	v.Int64s, v.OwnsValues = dst, true
	return nil
}
