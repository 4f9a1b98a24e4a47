// Package reference computes logit by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/logit"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/logit"
)

// Unit is the operator's unit.
const Unit = logit.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, env *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(logit.Op)
	return env.OfFloats(o, func(x float32) float32 { return unit.Reference(x, o.Eps) }), nil
}
