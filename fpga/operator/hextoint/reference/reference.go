// Package reference computes hex_to_int by its definition.
package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/operator/hextoint"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/hextoint"
)

// Unit is the operator's unit.
const Unit = hextoint.Unit

// New implements [rowvalue.Constructor].
func New(_ rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	return rowvalue.OfValues(func(token []byte) (any, error) {
		if len(token) == 0 {
			return nil, nil
		}
		x, ok := unit.Reference(token)
		if !ok {
			return nil, fmt.Errorf("%w: token %q", rowvalue.ErrData, token)
		}
		return int64(x), nil
	}), nil
}
