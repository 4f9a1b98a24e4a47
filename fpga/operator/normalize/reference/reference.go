// Package reference computes normalize by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/normalize"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/normalize"
)

// Unit is the operator's unit.
const Unit = normalize.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(normalize.Op)
	return rowvalue.OfValues(func(x float32) (any, error) { return unit.Reference(x, o.Mean, o.Deviation), nil }), nil
}
