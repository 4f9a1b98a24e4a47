// Package reference computes rescale by its definition.
package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/operator/rescale"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/rescale"
)

// Unit is the operator's unit.
const Unit = rescale.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(rescale.Op)
	return rowvalue.OfValues(func(x int64) (any, error) {
		y, ok := unit.Reference(x, o.Multiplier, o.Divisor)
		if !ok {
			return nil, fmt.Errorf("%w: %d times %d does not fit int64", rowvalue.ErrData, x, o.Multiplier)
		}
		return y, nil
	}), nil
}
