package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/operator/references"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// ErrData says that the partition holds a value that the pipeline does not allow.
var ErrData = rowvalue.ErrData

// chain is the references of operators, each of which takes what the one before makes.
type chain []link

// link is the reference of one operator.
type link struct {
	unit      program.Unit
	reference rowvalue.Reference
}

// newLink returns the reference of an operator whose inputs have the given types.
func newLink(op rowvalue.Operator, inputs []program.ValueType, env *rowvalue.Environment) (link, error) {
	r, err := references.New(op, inputs, env)
	if err != nil {
		return link{}, fmt.Errorf("%v: %w", op.Unit(), err)
	}
	return link{op.Unit(), r}, nil
}

// newChain returns the chain of operators behind a value of a type, and the type of what the chain makes.
func newChain(ops []program.Op, of program.ValueType, env *rowvalue.Environment) (chain, program.ValueType, error) {
	var all chain
	for _, op := range ops {
		l, err := newLink(op, []program.ValueType{of}, env)
		if err != nil {
			return nil, of, err
		}
		all = append(all, l)
		of.Kind = op.Out(of.Kind)
	}
	return all, of, nil
}

// evaluate returns what the operator makes of a row.
func (l link) evaluate(inputs ...any) (any, error) {
	v, err := l.reference(inputs)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", l.unit, err)
	}
	return v, nil
}

// run returns what the chain makes of a row's value.
func (c chain) run(row any) (any, error) {
	for _, l := range c {
		var err error
		if row, err = l.evaluate(row); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// runScored returns what the chain makes of a row's ids, with the scores of those that are left: all of them, the first
// ones or none.
func (c chain) runScored(row rowvalue.ScoredList) (any, error) {
	v, err := c.run(row.IDs)
	if err != nil {
		return nil, err
	}
	left, _ := v.([]any)
	if rowvalue.HoldsNull(left) {
		left = nil
	}
	return rowvalue.ScoredList{IDs: left, Scores: row.Scores[:len(left)]}, nil
}

// evaluateScalar returns what an operator makes of a scalar that no chain of the program takes.
func evaluateScalar(op program.Op, v any) (any, error) {
	r, err := references.New(op, []program.ValueType{{}}, rowvalue.NewEnvironment(&program.Program{}))
	if err != nil {
		return nil, err
	}
	return r([]any{v})
}
