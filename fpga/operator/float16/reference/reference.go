// Package reference computes float16 by its definition.
package reference

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace/millrace/fpga/operator/float16"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/float16"
)

// Unit is the operator's unit.
const Unit = float16.Unit

// New implements [rowvalue.Constructor].
func New(_ rowvalue.Operator, inputs []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	return rowvalue.OfElements(inputs[0], func(v any) (any, error) {
		if v == nil {
			return nil, nil
		}
		value, ok := v.([]byte)
		if !ok {
			return nil, rowvalue.UnexpectedValue(v)
		}
		if len(value) != unit.Size {
			return nil, fmt.Errorf("%w: a FLOAT16 of %d bytes", rowvalue.ErrData, len(value))
		}
		return unit.Reference(binary.LittleEndian.Uint16(value)), nil
	}), nil
}
