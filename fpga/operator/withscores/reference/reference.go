// Package reference computes with_scores by its definition.
package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/operator/withscores"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/scoredlist"
)

// Unit is the operator's unit.
const Unit = withscores.Unit

// New implements [rowvalue.Constructor].
func New(_ rowvalue.Operator, inputs []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	forAll := !inputs[1].List
	return func(inputs []any) (any, error) {
		ids, scores, ok := unit.ReferenceJoin(rowvalue.IDs(inputs[0]), rowvalue.Scores(inputs[1]), forAll)
		if !ok {
			return nil, fmt.Errorf("%w: %d ids and %d scores", rowvalue.ErrData, len(ids), len(scores))
		}
		return rowvalue.ScoredList{IDs: rowvalue.List(ids), Scores: scores}, nil
	}, nil
}
