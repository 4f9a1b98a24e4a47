// Package reference computes min_max by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/minmax"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/minmax"
)

// Unit is the operator's unit.
const Unit = minmax.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(minmax.Op)
	return rowvalue.OfValues(func(x float32) (any, error) { return unit.Reference(x, o.Min, o.Max), nil }), nil
}
