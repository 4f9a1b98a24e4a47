// Package reference computes list_length by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/listlength"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// Unit is the operator's unit.
const Unit = listlength.Unit

// New implements [rowvalue.Constructor].
func New(_ rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	return func(inputs []any) (any, error) {
		switch list := rowvalue.WithoutScores(inputs[0]).(type) {
		case nil:
			return int64(0), nil
		case []any:
			if rowvalue.HoldsNull(list) {
				return int64(0), nil
			}
			return int64(len(list)), nil
		default:
			return nil, rowvalue.UnexpectedValue(list)
		}
	}, nil
}
