// Package reference computes firstx by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/firstx"
)

// Unit is the operator's unit.
const Unit = firstx.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(firstx.Op)
	return rowvalue.OfLists(func(list []any) (any, error) { return unit.Reference(list, o.N), nil }), nil
}
