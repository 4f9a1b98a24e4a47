// Package reference computes ngram by its definition.
package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/operator/ngram"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/ngram"
)

// Unit is the operator's unit.
const Unit = ngram.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(ngram.Op)
	return rowvalue.OfLists(func(list []any) (any, error) {
		ids := rowvalue.IDs(list)
		if o.Mode != ngram.RAP {
			return rowvalue.List(unit.Reference(ids, o.N)), nil
		}
		all, ok := unit.ListReference(ids, o.N)
		if !ok {
			return nil, fmt.Errorf("%w: windows of more than %d ids", rowvalue.ErrData, unit.MaxListed)
		}
		return rowvalue.List(all), nil
	}), nil
}
