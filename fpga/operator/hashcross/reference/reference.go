// Package reference computes hash_cross by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/hashcross"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/hashcross"
)

// Unit is the operator's unit.
const Unit = hashcross.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(hashcross.Op)
	return func(inputs []any) (any, error) {
		var ids []int64
		for _, in := range inputs {
			if in == nil {
				return nil, nil
			}
			ids = append(ids, rowvalue.IDs(in)...)
		}
		return unit.Reference(ids, o.Buckets), nil
	}, nil
}
