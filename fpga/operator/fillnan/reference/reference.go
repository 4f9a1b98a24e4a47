// Package reference computes fill_nan by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/fillnan"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/fillnan"
)

// Unit is the operator's unit.
const Unit = fillnan.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(fillnan.Op)
	return rowvalue.OfValues(func(v any) (any, error) {
		switch x := v.(type) {
		case float32:
			return unit.Reference(x, float32(o.Value)), nil
		case float64:
			return unit.Reference(x, o.Value), nil
		}
		return nil, rowvalue.UnexpectedValue(v)
	}), nil
}
