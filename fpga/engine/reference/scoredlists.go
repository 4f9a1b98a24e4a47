package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/scoredlist"
)

// scoredRow is a row's list of ids with scores.
type scoredRow struct {
	ids    []any
	scores []float32
}

// withoutScores returns a row's value without the scores of its ids.
func withoutScores(v any) any {
	if row, ok := v.(scoredRow); ok {
		return row.ids
	}
	return v
}

// combineScored applies an operator that makes scores, or takes them as numbers.
func combineScored(c program.Combiner, inputs []any, types []program.ValueType) (any, error) {
	if _, is := c.(program.Scores); is {
		list := []any{}
		for _, score := range inputs[0].(scoredRow).scores {
			list = append(list, score)
		}
		return list, nil
	}
	ids := idsOf(withoutScores(inputs[0]))
	if _, is := c.(program.Enumerate); is {
		return scoredRow{listOfIDs(ids), scoredlist.ReferencePositions(ids)}, nil
	}
	kept, scores, ok := scoredlist.ReferenceJoin(ids, scoresOf(inputs[1]), !types[1].List)
	if !ok {
		return nil, fmt.Errorf("%w: %d ids and %d scores", ErrData, len(kept), len(scores))
	}
	return scoredRow{listOfIDs(kept), scores}, nil
}

// runScoredChain runs a chain over a row's ids, and keeps the scores of those that are left: all of them, the first
// ones or none.
func (e *evaluator) runScoredChain(ops []program.Op, c *program.Column, row scoredRow) (scoredRow, error) {
	v, err := e.runChain(ops, c, row.ids)
	if err != nil {
		return row, err
	}
	left, _ := v.([]any)
	if holdsNull(left) {
		left = nil
	}
	return scoredRow{left, row.scores[:len(left)]}, nil
}
