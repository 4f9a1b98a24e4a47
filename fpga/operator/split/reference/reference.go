// Package reference computes split by its definition.
package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/operator/split"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/split"
)

// Unit is the operator's unit.
const Unit = split.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(split.Op)
	rule := unit.Rule{Separator: o.Separator, KeepEmpty: o.Empty == split.KeepEmpty}
	return func(inputs []any) (any, error) {
		switch text := inputs[0].(type) {
		case nil:
			return []any{}, nil
		case []byte:
			parts, ok := unit.Reference(text, rule)
			if !ok {
				return nil, fmt.Errorf("%w: a text of more than %d parts", rowvalue.ErrData, unit.MaxParts)
			}
			return rowvalue.List(parts), nil
		default:
			return nil, rowvalue.UnexpectedValue(text)
		}
	}, nil
}
