// Package reference computes scores by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/scores"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// Unit is the operator's unit.
const Unit = scores.Unit

// New implements [rowvalue.Constructor].
func New(_ rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	return func(inputs []any) (any, error) {
		scored, ok := inputs[0].(rowvalue.ScoredList)
		if !ok {
			return nil, rowvalue.UnexpectedValue(inputs[0])
		}
		return rowvalue.List(scored.Scores), nil
	}, nil
}
