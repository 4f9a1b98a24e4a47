// Package reference computes get_local_hour by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/getlocalhour"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/localhour"
)

// Unit is the operator's unit.
const Unit = getlocalhour.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(*getlocalhour.Op)
	return rowvalue.OfValues(func(t int64) (any, error) { return unit.Reference(t, o.Starts, o.Offsets), nil }), nil
}
