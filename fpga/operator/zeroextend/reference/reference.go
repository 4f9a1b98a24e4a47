// Package reference computes zero_extend by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/zeroextend"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/zeroextend"
)

// Unit is the operator's unit.
const Unit = zeroextend.Unit

// New implements [rowvalue.Constructor].
func New(_ rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	return rowvalue.OfValues(func(id int64) (any, error) { return unit.Reference(id), nil }), nil
}
