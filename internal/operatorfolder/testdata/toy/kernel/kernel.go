// Package kernel makes the operator toy ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/toy"
	"github.com/millrace/millrace/fpga/program"
)

// Unit is the unit that computes the operator.
const Unit = toy.Unit

// step computes ids where they lie.
type step struct{ times, plus int64 }

// Compile makes the operator ready.
func Compile(op program.Op, _ program.Kind, _ *block.Tables) (block.Step, error) {
	o := op.(toy.Op)
	return step{o.Times, o.Plus}, nil
}

// ChangesInPlace implements block.InPlace.
func (step) ChangesInPlace() {}

// Run implements block.Step.
func (s step) Run(b *block.Buffers, v *block.Values) error {
	b.OwnValues(v)
	for i, x := range v.Int64s {
		v.Int64s[i] = x*s.times + s.plus
	}
	return nil
}
