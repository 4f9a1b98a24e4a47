// Package reference computes text_to_int by its definition.
package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/operator/texttoint"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/texttoint"
)

// Unit is the operator's unit.
const Unit = texttoint.Unit

// New implements [rowvalue.Constructor].
func New(_ rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	return rowvalue.OfValues(func(text []byte) (any, error) {
		if len(text) == 0 {
			return nil, nil
		}
		n, err := unit.Reference(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", rowvalue.ErrData, err)
		}
		return n, nil
	}), nil
}
