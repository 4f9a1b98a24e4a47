// Package reference computes vocabulary by its definition.
package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/operator/vocabulary"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	"github.com/millrace/millrace/fpga/unit/sigridhash"
	unit "github.com/millrace/millrace/fpga/unit/vocabulary"
)

// Unit is the operator's unit.
const Unit = vocabulary.Unit

// table is the number of a lookup table, of which the environment keeps one map for all operators.
type table uint32

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, env *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(vocabulary.Op)
	indices, err := rowvalue.Shared(env, table(o.Table), func() (unit.Reference, error) {
		return unit.NewReference(env.LookupTables[o.Table].Listed)
	})
	if err != nil {
		return nil, err
	}
	return rowvalue.OfValues(func(key int64) (any, error) {
		index, ok := indices[key]
		switch {
		case ok:
			return o.Base + int64(index), nil
		case o.Absent == vocabulary.AbsentRare:
			return o.Rare, nil
		case o.Absent == vocabulary.AbsentBucket:
			buckets := int64(o.Buckets)
			return o.Base - buckets + sigridhash.Reference(key, 0, buckets), nil
		}
		return nil, fmt.Errorf("%w: the lookup table lacks the key %d", rowvalue.ErrData, key)
	}), nil
}
