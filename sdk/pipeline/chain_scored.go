package pipeline

import (
	"math"

	"github.com/millrace/millrace/fpga/program"
)

// scored reports whether the value is a list of ids with scores, which a step made or a map has.
func (o *operand) scored() bool {
	if o.step == nil {
		return o.column.Map.Scores != ""
	}
	return o.step.yields.Scored
}

// valueType returns the type of the value as a step takes it.
func (o *operand) valueType() program.ValueType {
	return program.ValueType{Kind: o.kind, List: o.column.List, Scored: o.scored()}
}

// beginStep makes a step of an operator that takes one whole value. The chain then begins with the step's result.
func (c *chain) beginStep(o program.Combiner) {
	in := *c.operand()
	in.shared = 0
	of, ok := o.Yield([]program.ValueType{in.valueType()})
	if !ok {
		c.failed = true
		return
	}
	s := &step{combine: o, inputs: []operand{in}, yields: of, nullable: in.null(program.MalformedFail),
		nullableIfMalformed: in.null(program.MalformedNull)}
	if of.List {
		s.nullable, s.nullableIfMalformed = false, false // a null becomes a list without ids
	}
	c.from = &operand{step: s, kind: of.Kind, ids: idRange{math.MinInt64, math.MaxInt64}, origin: in.origin,
		column: ColumnInfo{Name: in.column.Name, Source: in.column.Source, Kind: of.Kind, List: of.List}}
	if of.Kind == program.Int64 {
		c.from.ids, c.from.bounded = c.ids, c.bounded
	}
	c.column, c.kind, c.nulls, c.ops = &c.from.column, of.Kind, nullness{}, nil
	c.ids, c.bounded = c.from.ids, c.from.bounded
}
