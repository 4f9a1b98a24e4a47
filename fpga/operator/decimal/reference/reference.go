// Package reference computes decimal by its definition.
package reference

import (
	"fmt"
	"math/big"

	"github.com/millrace/millrace/fpga/operator/decimal"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/decimal"
)

// Unit is the operator's unit.
const Unit = decimal.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(decimal.Op)
	return rowvalue.OfValues(func(v any) (any, error) {
		var n *big.Int
		switch x := v.(type) {
		case int64:
			n = big.NewInt(x)
		case []byte:
			if len(x) == 0 || len(x) > unit.MaxBytes {
				return nil, fmt.Errorf("%w: a decimal of %d bytes", rowvalue.ErrData, len(x))
			}
			n = unit.Unscaled(x)
		default:
			return nil, rowvalue.UnexpectedValue(v)
		}
		switch o.To {
		case program.Float32:
			return unit.ReferenceFloat32(n, o.Scale), nil
		case program.Float64:
			return unit.ReferenceFloat64(n, o.Scale), nil
		}
		if !n.IsInt64() {
			return nil, fmt.Errorf("%w: the decimal %v does not fit int64", rowvalue.ErrData, n)
		}
		return n.Int64(), nil
	}), nil
}
