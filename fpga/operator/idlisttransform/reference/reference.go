// Package reference computes id_list_transform by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/idlisttransform"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/idlisttransform"
)

// Unit is the operator's unit.
const Unit = idlisttransform.Unit

// New implements [rowvalue.Constructor].
func New(_ rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	return func(inputs []any) (any, error) {
		return rowvalue.List(unit.Reference(rowvalue.IDs(inputs[0]), rowvalue.IDs(inputs[1]))), nil
	}, nil
}
