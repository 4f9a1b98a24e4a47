// Package kernel makes the operator ngram ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/ngram"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/ngram"
)

// Unit is the unit that computes the operator.
const Unit = ngram.Unit

// step replaces every list by the hashes of its windows.
type step struct{ size int64 }

// listing replaces every list by the ids of all its windows, one window behind the other.
type listing struct{ size int64 }

// Compile makes the operator ready.
func Compile(op program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	o := op.(ngram.Op)
	if o.Mode == ngram.RAP {
		return &listing{o.N}, nil
	}
	return &step{o.N}, nil
}

// Run implements block.Step.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	b.OwnLengths(v)
	b.OwnValues(v)
	kept, err := unit.NGram(v.Lengths, v.Int64s, s.size)
	v.Count, v.Int64s = kept, v.Int64s[:kept]
	return err
}

// MostElements implements block.ListGrower.
func (s *listing) MostElements(n int64) int64 { return min(n*s.size, unit.MaxListed) }

// Run implements block.Step.
func (s *listing) Run(b *block.Buffers, v *block.Values) error {
	b.OwnLengths(v)
	dst, err := unit.List(b.Grown.Int64s[:0], v.Lengths, v.Int64s[:v.Count], s.size)
	if err != nil {
		return err
	}
	b.Grown.Int64s, b.Int64s = b.Int64s, dst
	v.Int64s, v.Count, v.OwnsValues = dst, len(dst), true
	return nil
}
