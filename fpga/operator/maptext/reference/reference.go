// Package reference computes map_text by its definition.
package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/operator/maptext"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/maptext"
)

// Unit is the operator's unit.
const Unit = maptext.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(*maptext.Op)
	return rowvalue.OfValues(func(text []byte) (any, error) {
		value, ok := unit.Reference(text, o.Keys, o.Values)
		switch {
		case ok:
			return value, nil
		case o.Unknown == maptext.UnknownDefault:
			return o.Default, nil
		case o.Unknown == maptext.UnknownNull:
			return nil, nil
		}
		return nil, fmt.Errorf("%w: the table lacks the text %q", rowvalue.ErrData, text)
	}), nil
}
