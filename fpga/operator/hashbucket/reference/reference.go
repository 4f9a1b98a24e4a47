// Package reference computes hash_bucket by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/hashbucket"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/hashcross"
)

// Unit is the operator's unit.
const Unit = hashbucket.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(hashbucket.Op)
	return rowvalue.OfValues(func(id int64) (any, error) { return unit.Reference([]int64{id}, o.Buckets), nil }), nil
}
