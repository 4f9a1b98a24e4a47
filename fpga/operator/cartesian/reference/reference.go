// Package reference computes cartesian by its definition.
package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/operator/cartesian"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/cartesian"
)

// Unit is the operator's unit.
const Unit = cartesian.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, inputs []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(cartesian.Op)
	params := unit.Params{MaxLength: o.MaxLength, Fail: o.Overflow == cartesian.Fail}
	scalar := !inputs[0].List && !inputs[1].List
	return func(inputs []any) (any, error) {
		a, b := rowvalue.IDs(inputs[0]), rowvalue.IDs(inputs[1])
		ids, ok := unit.Reference(a, b, params)
		switch {
		case !ok:
			return nil, fmt.Errorf("%w: %d x %d ids, want at most %d", rowvalue.ErrData, len(a), len(b), o.MaxLength)
		case !scalar:
			return rowvalue.List(ids), nil
		case len(ids) == 0:
			return nil, nil
		}
		return ids[0], nil
	}, nil
}
