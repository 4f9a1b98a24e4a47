// Package kernel makes the operator map_text ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/maptext"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/maptext"
)

// Unit is the unit that computes the operator.
const Unit = maptext.Unit

// step replaces texts by the values of a table.
type step struct {
	keys   *unit.Index
	values []int64
	rule   unit.Rule
	other  int64
}

// keyMemory identifies a list of keys by its memory. Operators that share a list share its index.
type keyMemory struct {
	first *string
	count int
}

// Compile makes the operator ready.
func Compile(op program.Op, _ program.Kind, t *block.Tables) (block.Step, error) {
	o := op.(*maptext.Op)
	s := &step{values: o.Values, other: o.Default, rule: map[maptext.Unknown]unit.Rule{
		maptext.UnknownFails: unit.Fail, maptext.UnknownDefault: unit.Default, maptext.UnknownNull: unit.Null}[o.Unknown]}
	var err error
	s.keys, err = block.Once(t, keyMemory{&o.Keys[0], len(o.Keys)}, func() (*unit.Index, error) {
		return unit.New(o.Keys)
	})
	return s, err
}

// Run implements block.Step.
func (s *step) Run(b *block.Buffers, v *block.Values) error {
	return b.ReadTexts(v, func(dst []int64, offsets []uint32, data, valid []byte) error {
		return s.keys.Map(dst, offsets, data, valid, s.values, s.rule, s.other)
	})
}
