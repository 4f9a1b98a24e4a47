// Package reference computes convert by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/convert"
)

// Unit is the operator's unit.
const Unit = convert.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(convert.Op)
	return rowvalue.OfValues(func(v any) (any, error) {
		switch x := v.(type) {
		case int64:
			if o.To == program.Float32 {
				return unit.ReferenceFloat32(x), nil
			}
			return float64(x), nil
		case float32:
			return float64(x), nil
		case float64:
			return unit.ReferenceFloat32(x), nil
		}
		return nil, rowvalue.UnexpectedValue(v)
	}), nil
}
