// Package kernel makes the operator id_list_transform ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/idlisttransform"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/idlisttransform"
)

// Unit is the unit that computes the operator.
const Unit = idlisttransform.Unit

// combiner intersects lists of ids.
type combiner struct{}

// CompileCombiner makes the operator ready.
func CompileCombiner(_ program.Combiner, _ *block.Tables) (block.Combiner, error) {
	return combiner{}, nil
}

// Combine implements block.Combiner.
func (combiner) Combine(to *block.GraphValue, inputs []*block.Values, _ int) error {
	lengths, ids, err := block.StateOf[unit.Intersection](to).Lists(to.Lengths[:0], to.Int64s[:0],
		unit.Input(to.ListOf(0, inputs[0])), unit.Input(to.ListOf(1, inputs[1])))
	if err != nil {
		return err
	}
	to.SetLists(lengths, ids)
	return nil
}
