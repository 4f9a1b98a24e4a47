// Package kernel makes the operator cartesian ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/cartesian"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/cartesian"
)

// Unit is the unit that computes the operator.
const Unit = cartesian.Unit

// combiner makes ids of pairs of ids.
type combiner struct{ params unit.Params }

// CompileCombiner makes the operator ready.
func CompileCombiner(c program.Combiner, _ *block.Tables) (block.Combiner, error) {
	o := c.(cartesian.Op)
	return &combiner{unit.Params{MaxLength: o.MaxLength, Fail: o.Overflow == cartesian.Fail}}, nil
}

// Combine implements block.Combiner.
func (c *combiner) Combine(to *block.GraphValue, inputs []*block.Values, rows int) error {
	first, second := inputs[0], inputs[1]
	if !first.List && !second.List {
		to.BeginScalars(rows, first, second)
		unit.Scalars(to.Int64s, first.Int64s, second.Int64s)
		return nil
	}
	lengths, ids, err := unit.Lists(to.Lengths[:0], to.Int64s[:0], unit.Input(to.ListOf(0, first)),
		unit.Input(to.ListOf(1, second)), c.params)
	if err != nil {
		return err
	}
	to.SetLists(lengths, ids)
	return nil
}
