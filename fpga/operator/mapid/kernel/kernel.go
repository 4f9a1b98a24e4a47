// Package kernel makes the operator map_id ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/mapid"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/mapid"
)

// Unit is the unit that computes the operator.
const Unit = mapid.Unit

// step replaces ids by the values of a table.
type step struct {
	keys     *unit.Index // The keys of the table; nil if it is dense.
	values   []int64
	fallback int64
}

// listMemory identifies a list of keys by its memory. Operators that share a list share its index.
type listMemory struct {
	first *int64
	count int
}

// Compile makes the operator ready.
func Compile(op program.Op, _ program.Kind, t *block.Tables) (block.Step, error) {
	o := op.(*mapid.Op)
	s := &step{values: o.Values, fallback: o.Default}
	if len(o.Keys) == 0 {
		return s, nil
	}
	var err error
	s.keys, err = block.Once(t, listMemory{&o.Keys[0], len(o.Keys)}, func() (*unit.Index, error) {
		return unit.New(o.Keys)
	})
	return s, err
}

// Run implements block.Step.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	dst := b.IntDestination(v.Count)
	if s.keys != nil {
		s.keys.Map(dst, v.Int64s[:v.Count], s.values, s.fallback)
	} else {
		unit.Dense(dst, v.Int64s[:v.Count], s.values, s.fallback)
	}
	v.Int64s, v.OwnsValues = dst, true
	return nil
}
