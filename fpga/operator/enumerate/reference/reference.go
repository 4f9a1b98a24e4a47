// Package reference computes enumerate by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/enumerate"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/scoredlist"
)

// Unit is the operator's unit.
const Unit = enumerate.Unit

// New implements [rowvalue.Constructor].
func New(_ rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	return func(inputs []any) (any, error) {
		ids := rowvalue.IDs(inputs[0])
		return rowvalue.ScoredList{IDs: rowvalue.List(ids), Scores: unit.ReferencePositions(ids)}, nil
	}, nil
}
