// Package reference computes sigrid_hash by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/sigridhash"
)

// Unit is the operator's unit.
const Unit = sigridhash.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(sigridhash.Op)
	return rowvalue.OfValues(func(id int64) (any, error) { return unit.Reference(id, o.Salt, o.Max), nil }), nil
}
