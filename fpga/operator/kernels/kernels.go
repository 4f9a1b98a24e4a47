// Package kernels makes the operators of a program ready to run over blocks. The list of operators is generated from
// the folders of package operator.
package kernels

import (
	"fmt"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/program"
)

// StepCompiler makes an operator of one input ready for values of kind in, which the operator takes. The operator is of
// the unit that the compiler is listed for.
type StepCompiler func(op program.Op, in program.Kind, t *block.Tables) (block.Step, error)

// CombinerCompiler makes an operator of several inputs ready. The operator is of the unit that the compiler is listed
// for.
type CombinerCompiler func(c program.Combiner, t *block.Tables) (block.Combiner, error)

// CompileStep makes an operator of one input ready for values of kind in.
func CompileStep(op program.Op, in program.Kind, t *block.Tables) (block.Step, error) {
	compile, ok := steps[op.Unit()]
	if !ok {
		return nil, fmt.Errorf("%v (%T) is not an operator of this engine", op.Unit(), op)
	}
	return compile(op, in, t)
}

// CompileCombiner makes an operator of several inputs ready.
func CompileCombiner(c program.Combiner, t *block.Tables) (block.Combiner, error) {
	compile, ok := combiners[c.Unit()]
	if !ok {
		return nil, fmt.Errorf("%v (%T) is not an operator of several inputs of this engine", c.Unit(), c)
	}
	return compile(c, t)
}
