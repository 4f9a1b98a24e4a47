// Package reference computes clamp by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/clamp"
)

// Unit is the operator's unit.
const Unit = clamp.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(clamp.Op)
	return rowvalue.OfValues(func(v any) (any, error) {
		switch x := v.(type) {
		case int64:
			return unit.Reference(x, o.IntLo, o.IntHi), nil
		case float32:
			return unit.Reference(x, float32(o.FloatLo), float32(o.FloatHi)), nil
		case float64:
			return unit.Reference(x, o.FloatLo, o.FloatHi), nil
		}
		return nil, rowvalue.UnexpectedValue(v)
	}), nil
}
