// Package reference computes unpack by its definition.
package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/operator/unpack"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/unpack"
)

// Unit is the operator's unit.
const Unit = unpack.Unit

// New implements [rowvalue.Constructor].
func New(rowvalue.Operator, []program.ValueType, *rowvalue.Environment) (rowvalue.Reference, error) {
	return func(inputs []any) (any, error) {
		switch value := inputs[0].(type) {
		case nil:
			return []any{}, nil
		case []byte:
			numbers, ok := unit.Reference(value)
			if !ok {
				return nil, fmt.Errorf("%w: %d bytes that are not float32 numbers", rowvalue.ErrData, len(value))
			}
			return rowvalue.List(numbers), nil
		default:
			return nil, rowvalue.UnexpectedValue(value)
		}
	}, nil
}
