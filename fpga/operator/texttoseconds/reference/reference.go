// Package reference computes text_to_seconds by its definition.
package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/operator/texttoseconds"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/texttoseconds"
)

// Unit is the operator's unit.
const Unit = texttoseconds.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(texttoseconds.Op)
	return rowvalue.OfValues(func(text []byte) (any, error) {
		if len(text) == 0 {
			return nil, nil
		}
		seconds, err := unit.Reference(text, unit.Zone{Known: o.Assumes, Offset: o.Offset})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", rowvalue.ErrData, err)
		}
		return seconds, nil
	}), nil
}
