// Package kernel makes the operator split ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/split"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/split"
)

// Unit is the unit that computes the operator.
const Unit = split.Unit

// combiner cuts texts.
type combiner struct{ rule unit.Rule }

// CompileCombiner makes the operator ready.
func CompileCombiner(c program.Combiner, _ *block.Tables) (block.Combiner, error) {
	o := c.(split.Op)
	return &combiner{unit.Rule{Separator: o.Separator, KeepEmpty: o.Empty == split.KeepEmpty}}, nil
}

// Combine implements block.Combiner.
func (c *combiner) Combine(to *block.GraphValue, inputs []*block.Values, _ int) error {
	in := inputs[0]
	lists := unit.Lists{Lengths: to.Lengths, Texts: unit.Texts{Offsets: to.Offsets, Data: to.Data}}
	err := lists.Split(unit.Texts{Offsets: in.Offsets, Data: in.Data}, in.Valid, c.rule)
	to.SetTexts(lists.Lengths, lists.Offsets, lists.Data)
	return err
}
