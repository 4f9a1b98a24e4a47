// Package reference computes toy by its definition.
package reference

import (
	"math/big"

	"github.com/millrace/millrace/fpga/operator/toy"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// Unit is the operator's unit.
const Unit = toy.Unit

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(toy.Op)
	modulus := new(big.Int).Lsh(big.NewInt(1), 64)
	return rowvalue.OfValues(func(id int64) (any, error) {
		x := big.NewInt(id)
		x.Mul(x, big.NewInt(o.Times)).Add(x, big.NewInt(o.Plus)).Mod(x, modulus)
		return int64(x.Uint64()), nil
	}), nil
}
