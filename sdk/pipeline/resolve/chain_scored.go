package resolve

import (
	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

// scored reports whether the value is a list of ids with scores, which a step made or a map has.
func (o *Operand) scored() bool {
	if o.Step == nil {
		return o.Column.Map.Scores != ""
	}
	return o.Step.Yields.Scored
}

// valueType returns the type of the value as a step takes it.
func (o *Operand) valueType() program.ValueType {
	return program.ValueType{Kind: o.kind, List: o.Column.List, Scored: o.scored()}
}

// BeginStep makes a step of an operator that takes one whole value. The chain then begins with the step's result.
func (c *chain) BeginStep(o program.Combiner) {
	in := *c.operand()
	in.shared = 0
	of, ok := o.Yield([]program.ValueType{in.valueType()})
	if !ok {
		c.failed = true
		return
	}
	s := &Step{Combine: o, Inputs: []Operand{in}, Yields: of, nullable: in.null(program.MalformedFail),
		nullableIfMalformed: in.null(program.MalformedNull)}
	if of.List {
		s.nullable, s.nullableIfMalformed = false, false // a null becomes a list without ids
	}
	c.from = &Operand{Step: s, kind: of.Kind, ids: catalogue.AllIntegers, origin: in.origin,
		Column: columntypes.Column{Name: in.Column.Name, Source: in.Column.Source, Kind: of.Kind, List: of.List}}
	if of.Kind == program.Int64 {
		c.from.ids, c.from.bounded = c.ids, c.bounded
	}
	c.column, c.kind, c.nulls, c.ops = &c.from.Column, of.Kind, nullness{}, nil
	c.ids, c.bounded = c.from.ids, c.from.bounded
}
