// Package reference computes hash_bytes by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/operator/hashbytes"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/hashbytes"
)

// Unit is the operator's unit.
const Unit = hashbytes.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(hashbytes.Op)
	function := map[hashbytes.Function]unit.Function{hashbytes.XXH3: unit.XXH3, hashbytes.Murmur3: unit.Murmur3,
		hashbytes.FarmHash: unit.FarmHash}[o.Function]
	return rowvalue.OfValues(func(b []byte) (any, error) { return unit.Reference(b, function), nil }), nil
}
