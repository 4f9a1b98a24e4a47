// Package reference computes unsigned_modulus by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/unsignedmodulus"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/unsignedmodulus"
)

// Unit is the operator's unit.
const Unit = unsignedmodulus.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(unsignedmodulus.Op)
	return rowvalue.OfValues(func(x int64) (any, error) { return unit.Reference(x, o.M), nil }), nil
}
