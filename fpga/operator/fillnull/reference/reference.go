// Package reference computes fill_null by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// Unit is the operator's unit.
const Unit = fillnull.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, inputs []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(fillnull.Op)
	fill := rowvalue.Number(inputs[0].Kind, o.Int, o.Float)
	return rowvalue.OfElements(inputs[0], func(v any) (any, error) {
		if v == nil {
			return fill, nil
		}
		return v, nil
	}), nil
}
