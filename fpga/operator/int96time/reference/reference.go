// Package reference computes int96_time by its definition.
package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/operator/int96time"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/int96"
)

// Unit is the operator's unit.
const Unit = int96time.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(int96time.Op)
	return rowvalue.OfValues(func(value []byte) (any, error) {
		if len(value) != unit.Size {
			return nil, fmt.Errorf("%w: an INT96 of %d bytes", rowvalue.ErrData, len(value))
		}
		return unit.Reference(value, unit.Unit(o.To)), nil
	}), nil
}
