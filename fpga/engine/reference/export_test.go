package reference

import "github.com/millrace/millrace/fpga/program"

// Apply runs a chain over one row's value of a column: nil, a value, or for a column of lists []any. fill_null does not
// fill a null list.
func Apply(ops []program.Op, c *program.Column, row any) (any, error) {
	return (&evaluator{results: make(map[expression]float32)}).runChain(ops, c, row)
}
