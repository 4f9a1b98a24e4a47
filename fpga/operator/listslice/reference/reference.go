// Package reference computes list_slice by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/listslice"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/listslice"
)

// Unit is the operator's unit.
const Unit = listslice.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, inputs []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(listslice.Op)
	if !o.Padded {
		return rowvalue.OfLists(func(list []any) (any, error) {
			return unit.Reference(list, o.Start, o.End, 0, nil), nil
		}), nil
	}
	length, err := o.Length()
	if err != nil {
		return nil, err
	}
	pad := rowvalue.Number(inputs[0].Kind, o.PadInt, o.PadFloat)
	return func(inputs []any) (any, error) {
		list, _ := inputs[0].([]any)
		if rowvalue.HoldsNull(list) {
			list = nil
		}
		return unit.Reference(list, o.Start, o.End, length, pad), nil
	}, nil
}
