// Package reference computes fixed_length by its definition.
package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/operator/fixedlength"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// Unit is the operator's unit.
const Unit = fixedlength.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(fixedlength.Op)
	return func(inputs []any) (any, error) {
		values := rowvalue.Scores(inputs[0])
		got := len(values)
		for o.Pads && len(values) < int(o.Length) {
			values = append(values, o.Pad)
		}
		if len(values) != int(o.Length) {
			return nil, fmt.Errorf("%w: a list of length %d, want %d", rowvalue.ErrData, got, o.Length)
		}
		return values, nil
	}, nil
}
