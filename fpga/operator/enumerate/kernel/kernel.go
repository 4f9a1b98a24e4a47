// Package kernel makes the operator enumerate ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/enumerate"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/scoredlist"
)

// Unit is the unit that computes the operator.
const Unit = enumerate.Unit

// combiner gives ids their positions as scores.
type combiner struct{}

// CompileCombiner makes the operator ready.
func CompileCombiner(_ program.Combiner, _ *block.Tables) (block.Combiner, error) {
	return combiner{}, nil
}

// Combine implements block.Combiner.
func (combiner) Combine(to *block.GraphValue, inputs []*block.Values, _ int) error {
	in := to.ListOf(0, inputs[0])
	to.SetLists(append(to.Lengths[:0], in.Lengths...), append(to.Int64s[:0], in.IDs...))
	to.SetScores(scoredlist.AppendPositions(to.Scores[:0], in.Lengths))
	return nil
}
