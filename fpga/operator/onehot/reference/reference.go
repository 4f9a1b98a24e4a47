// Package reference computes onehot by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/onehot"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/onehot"
)

// Unit is the operator's unit.
const Unit = onehot.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(onehot.Op)
	return func(inputs []any) (any, error) {
		columns, class := make([]float32, o.Classes), int64(-1)
		switch x := inputs[0].(type) {
		case nil:
		case int64:
			class = unit.Reference(x, int(o.Classes))
		case float32:
			class = unit.ReferenceRange(x, o.Lower, o.Upper, int(o.Classes))
		default:
			return nil, rowvalue.UnexpectedValue(x)
		}
		if class >= 0 {
			columns[class] = 1
		}
		return columns, nil
	}, nil
}
