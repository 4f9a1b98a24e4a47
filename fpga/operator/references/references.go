// Package references makes the reference of any operator of the drive. The list of their constructors is generated
// from the folders of package operator.
package references

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// Constructor is the type of the list's elements.
type Constructor = rowvalue.Constructor

// New returns the reference of an operator whose inputs have the given types.
func New(op rowvalue.Operator, inputs []program.ValueType, env *rowvalue.Environment) (rowvalue.Reference, error) {
	construct, ok := constructors[op.Unit()]
	if !ok {
		return nil, fmt.Errorf("the operator %v has no reference: add the package NAME/reference to fpga/operator, and run "+
			"go generate ./fpga/operator", op.Unit())
	}
	return construct(op, inputs, env)
}
