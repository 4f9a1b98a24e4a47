// Package kernel makes the operator list_length ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/listlength"
	"github.com/millrace/millrace/fpga/program"
)

// Unit is the unit that computes the operator.
const Unit = listlength.Unit

// combiner widens the lengths of lists.
type combiner struct{}

// CompileCombiner makes the operator ready.
func CompileCombiner(_ program.Combiner, _ *block.Tables) (block.Combiner, error) {
	return combiner{}, nil
}

// Combine implements block.Combiner.
func (combiner) Combine(to *block.GraphValue, inputs []*block.Values, rows int) error {
	to.BeginScalars(rows)
	for r, n := range inputs[0].Lengths[:rows] {
		to.Int64s[r] = int64(n)
	}
	return nil
}
