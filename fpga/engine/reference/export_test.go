package reference

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// Apply runs a chain over one row's value of a column.
func Apply(ops []program.Op, c *program.Column, row any) (any, error) {
	of := program.ValueType{Kind: c.Kind, List: c.List}
	all, _, err := newChain(ops, of, rowvalue.NewEnvironment(&program.Program{}))
	if err != nil {
		return nil, err
	}
	return all.run(row)
}
