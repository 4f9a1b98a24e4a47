// Package kernel makes the operator scores ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/scores"
	"github.com/millrace/millrace/fpga/program"
)

// Unit is the unit that computes the operator.
const Unit = scores.Unit

// combiner yields the scores of ids.
type combiner struct{}

// CompileCombiner makes the operator ready.
func CompileCombiner(_ program.Combiner, _ *block.Tables) (block.Combiner, error) {
	return combiner{}, nil
}

// Combine implements block.Combiner.
func (combiner) Combine(to *block.GraphValue, inputs []*block.Values, _ int) error {
	in := inputs[0]
	to.View = block.Values{Kind: program.Float32, Count: len(in.Scores), Float32s: in.Scores, List: true,
		Lengths: in.Lengths}
	return nil
}
