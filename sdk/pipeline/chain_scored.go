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

func applyEnumerate(c *chain, o *Op, a location) {
	if c.requireIntegers(o, a) {
		c.beginStep(program.Enumerate{})
	}
}

func applyScores(c *chain, _ *Op, a location) {
	switch {
	case !c.from.scored():
		c.refuse(a, ErrColumnType, "scores takes lists of ids with scores, as enumerate, with_scores and maps make them")
		return
	case c.kind != program.Int64:
		c.refuse(a, ErrColumnType, "scores takes ids with scores, and these have become %v", c.kind)
		return
	case movesIDs(c.ops) != "":
		c.refuse(a, ErrColumnType, "%s moves ids, and each of them has a score", movesIDs(c.ops))
		return
	}
	c.beginStep(program.Scores{})
}

func combineWithScores(c *combination, o *Op, _ location) {
	if !c.settleInput(0, o, program.Int64) || !c.settleInput(1, o, program.Float32) {
		return
	}
	ids := chain{r: c.r, column: &c.inputs[0].column, kind: c.inputs[0].kind}
	if !ids.requireIntegers(o, c.places[0]) {
		c.failed = true
		return
	}
	in := &c.inputs[1]
	scores := chain{r: c.r, column: &in.column, kind: in.kind, ops: append([]program.Op(nil), in.ops...)}
	if in.scored() {
		c.refuse(c.places[1], ErrColumnType, "with_scores takes numbers as scores, and these are ids with scores; take "+
			"their scores with the operator scores")
		return
	}
	if !scores.requireNumbers(o, c.places[1]) {
		c.failed = true
		return
	}
	scores.convert(program.Float32)
	in.ops, in.kind = scores.ops, scores.kind
	c.yield(program.WithScores{}, c.inputs[0].ids, c.inputs[0].bounded)
	c.value.step.nullable, c.value.step.nullableIfMalformed = false, false
}
