// Package reference computes log by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/logn"
)

// Unit is the operator's unit.
const Unit = log.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, env *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(log.Op)
	return env.OfFloats(o, func(x float32) float32 { return unit.Reference(x, o.Add) }), nil
}
