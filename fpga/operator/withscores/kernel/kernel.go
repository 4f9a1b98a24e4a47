// Package kernel makes the operator with_scores ready to run over blocks.
package kernel

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/withscores"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/scoredlist"
)

// Unit is the unit that computes the operator.
const Unit = withscores.Unit

// combiner gives ids the scores of another value.
type combiner struct{}

// CompileCombiner makes the operator ready.
func CompileCombiner(_ program.Combiner, _ *block.Tables) (block.Combiner, error) {
	return combiner{}, nil
}

// Combine implements block.Combiner.
func (combiner) Combine(to *block.GraphValue, inputs []*block.Values, _ int) error {
	ids := to.ListOf(0, inputs[0])
	scores := scoredlist.Scores{ForAll: !inputs[1].List}
	scores.Lengths, scores.Scores = to.ScoresOf(1, inputs[1])
	lists := scoredlist.Lists{Lengths: to.Lengths[:0], IDs: to.Int64s[:0], Scores: to.Scores[:0]}
	if err := lists.Join(scoredlist.IDs(ids), scores); err != nil {
		return err
	}
	to.SetLists(lists.Lengths, lists.IDs)
	to.SetScores(lists.Scores)
	return nil
}
