// Package reference computes hash_bytes by its definition.
package reference

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/hashbytes"
)

// Unit is the operator's unit.
const Unit = program.UnitHashBytes

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(program.HashBytes)
	function := map[program.HashFunction]unit.Function{program.HashXXH3: unit.XXH3, program.HashMurmur3: unit.Murmur3,
		program.HashFarmHash: unit.FarmHash}[o.Function]
	return rowvalue.OfValues(func(b []byte) (any, error) { return unit.Reference(b, function), nil }), nil
}
