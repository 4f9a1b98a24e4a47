// Package reference computes box_cox by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/boxcox"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/boxcox"
)

// Unit is the operator's unit.
const Unit = boxcox.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, env *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(boxcox.Op)
	params := unit.Params{Lambda1: o.Lambda1, Lambda2: o.Lambda2}
	if o.Mode == boxcox.RAP {
		params.Mode = unit.RAP
	}
	return env.OfFloats(o, func(x float32) float32 { return unit.Reference(x, params) }), nil
}
