package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// evaluator holds the references of a program's operators.
type evaluator struct {
	sinks map[*program.Sink]chain
	steps map[*program.Step]step
}

// step is the references of a step of a graph.
type step struct {
	combine *link // nil if the step takes one value
	chain   chain
}

// newEvaluator makes the references of a program's operators. The program must be valid.
func newEvaluator(p *program.Program) (evaluator, error) {
	e := evaluator{map[*program.Sink]chain{}, map[*program.Step]step{}}
	env := rowvalue.NewEnvironment(p)
	for i := 0; i < len(p.Columns); i += p.Parts(i) {
		columns := p.Columns[i : i+p.Parts(i)]
		err := error(nil)
		if g := p.GraphAt(i); g != nil {
			err = e.addGraph(g, columns, env)
		} else {
			err = e.addSinks(columns, env)
		}
		if err != nil {
			return e, fmt.Errorf("reference: column %q: %w", columns[0].Name, err)
		}
	}
	return e, nil
}

// addSinks makes the references of the sinks of a column or a map.
func (e *evaluator) addSinks(columns []program.Column, env *rowvalue.Environment) error {
	for i := range columns {
		c := &columns[i]
		for j := range c.Sinks {
			if err := e.addSink(&c.Sinks[j], program.ValueType{Kind: c.Kind, List: c.List}, env); err != nil {
				return fmt.Errorf("sink %d: %w", j, err)
			}
		}
	}
	return nil
}

// addSink makes the references of a sink of values of a type.
func (e *evaluator) addSink(s *program.Sink, of program.ValueType, env *rowvalue.Environment) (err error) {
	e.sinks[s], _, err = newChain(s.Ops, of, env)
	return err
}

// addGraph makes the references of a graph's steps and sinks.
func (e *evaluator) addGraph(g *program.Graph, columns []program.Column, env *rowvalue.Environment) error {
	var types []program.ValueType
	for _, v := range program.GraphValues(columns) {
		types = append(types, v.Type)
	}
	for i := range g.Steps {
		of, err := e.addStep(&g.Steps[i], types, env)
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		types = append(types, of)
	}
	for i := range g.Sinks {
		if err := e.addSink(&g.Sinks[i].Sink, types[g.Sinks[i].Value], env); err != nil {
			return fmt.Errorf("sink %d: %w", i, err)
		}
	}
	return nil
}

// addStep makes the references of a step and returns the type of its value.
func (e *evaluator) addStep(s *program.Step, types []program.ValueType, env *rowvalue.Environment) (program.ValueType,
	error) {
	of, made := types[s.Inputs[0]], step{}
	if s.Combine != nil {
		var inputs []program.ValueType
		for _, n := range s.Inputs {
			inputs = append(inputs, types[n])
		}
		combine, err := newLink(s.Combine, inputs, env)
		if err != nil {
			return of, err
		}
		made.combine = &combine
		of, _ = s.Combine.Yield(inputs)
	}
	var err error
	made.chain, of, err = newChain(s.Ops, of, env)
	e.steps[s] = made
	return of, err
}

// evaluate returns the value of a step.
func (s step) evaluate(inputs []any) (any, error) {
	v := inputs[0]
	if s.combine != nil {
		var err error
		if v, err = s.combine.evaluate(inputs...); err != nil {
			return nil, err
		}
	}
	if row, ok := v.(rowvalue.ScoredList); ok {
		return s.chain.runScored(row)
	}
	return s.chain.run(v)
}
