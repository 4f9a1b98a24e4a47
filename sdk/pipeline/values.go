package pipeline

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/program"
)

// operand is a value on its way to steps and features: a column or a step's value, behind a chain of operators.
type operand struct {
	vocabulary *Vocabulary      // that ended the operators; nil: none
	encoding   *featureEncoding // that ended the operators; nil: none
	column     ColumnInfo       // the column, or a description of the step's value; see scored
	key        int64            // of the map, if the column is a map
	text       string           // of a map whose keys are text
	step       *step            // nil: the value is the column's
	ops        []program.Op
	shared     int  // how many of the first ops belong to a named value
	absent     bool // partitions may lack the column
	kind       program.Kind
	nulls      nullness
	ids        idRange
	bounded    bool
	origin     origin       // what a document names for the value
	dest       program.Dest // tensor that the value ends in; 0 if operators of other chains take it
	settled    bool         // settle has decided how the column is read
}

// step is an operator of several inputs with its inputs. Steps are compared by their content, not by their place.
type step struct {
	combine program.Combiner
	inputs  []operand
	yields  program.ValueType
	// A row can lack the value, and can if the cells of malformed rows are null. Both are known once: a step may take
	// each step before it twice, so that a walk over all that it takes would not end.
	nullable, nullableIfMalformed bool
}

// null reports whether a row can lack the value.
func (o *operand) null(m program.Malformed) bool {
	in := o.column.Nullable || o.column.Source == program.CriteoTSV && m == program.MalformedNull
	if o.step != nil {
		in = o.step.nullable || m == program.MalformedNull && o.step.nullableIfMalformed
	}
	return in && !o.nulls.fills || o.nulls.makes
}

// valueState is a named value and how far it is resolved.
type valueState struct {
	spec     *NamedValue
	location location
	busy     bool // it is being resolved
	resolved bool
	operand  *operand // nil after an error
	used     bool
}

// declareValues takes in the names of the spec's values.
func (r *resolver) declareValues(values []NamedValue) {
	r.values = make(map[string]*valueState, len(values))
	for i := range values {
		v := &valueState{spec: &values[i], location: location{path: "values"}.index(i, values[i].Pos)}
		if _, column := r.byName[v.spec.As]; column {
			r.add(v.location.key("as", v.location.pos), ErrDuplicate, "%q is a column of the dataset; give the value "+
				"another name", shorten(v.spec.As))
		}
		r.values[v.spec.As] = v
		r.order = append(r.order, v)
	}
}

// refuseUnusedValues refuses values that no feature is made of.
func (r *resolver) refuseUnusedValues() {
	for _, v := range r.order {
		if !v.used && !r.stopped() {
			r.add(v.location, ErrUnused, "no group and no other value names %q; remove it", shorten(v.spec.As))
		}
	}
}

// resolveValue returns what a named value stands for. where is the place that names the value. It returns nil after an
// error.
func (r *resolver) resolveValue(v *valueState, where location) *operand {
	v.used = true
	switch {
	case v.busy:
		r.add(where, ErrCycle, "%q is made of itself", shorten(v.spec.As))
		return nil
	case v.resolved:
		return v.operand
	}
	v.busy = true
	a := v.location
	a.column = v.spec.As
	if len(v.spec.Inputs) > 0 {
		v.operand = r.combineInputs(v.spec.Inputs, v.spec.Ops, v.spec.AllowAbsent, a)
	} else if o := r.operandOf(v.spec.From, v.spec.AllowAbsent, a.key("from", firstPos(v.spec.From.Pos, a.pos)),
		v.spec.Ops); o != nil {
		from := *o
		if ch := r.runOperators(&from, v.spec.Ops, 0, a, false); ch != nil {
			v.operand = ch.operand()
		}
	}
	if v.operand != nil && v.operand.step != nil && v.operand.scored() && v.operand.kind != program.Int64 {
		r.add(a, ErrColumnType, "ids with scores become %v, and only ids have scores; take the scores with the operator "+
			"scores", v.operand.kind)
		v.operand = nil
	}
	if v.operand != nil && v.operand.step != nil && v.operand.scored() && program.MovesIDs(v.operand.ops) != "" {
		r.add(a, ErrColumnType, "%s moves ids, and each of them has a score; put it before the operator that makes the "+
			"scores, or into a group that says scores: drop", program.MovesIDs(v.operand.ops))
		v.operand = nil
	}
	if v.operand != nil && endsInClasses(v.operand.ops) {
		r.add(a, ErrValue, "onehot makes dense columns, and no value that others take; put it to a group of dense")
		v.operand = nil
	}
	if v.operand != nil {
		v.operand.shared = len(v.operand.ops)
		v.operand.origin = origin{columns: Columns(v.spec.As)}
	}
	v.busy, v.resolved = false, true
	return v.operand
}

// operandOf returns the one column or value that a pattern names. absent says that partitions may lack the column. ops
// are applied to it afterwards: a column that they do not take is not proposed in an error. It returns nil after an
// error.
func (r *resolver) operandOf(p Pattern, absent bool, a location, ops []Op) *operand {
	if v := r.values[p.Text]; v != nil {
		return r.resolveValue(v, a)
	}
	found, wrong := matchPattern(p.Text, r.schema, r.byName, func(name string) bool {
		trial := &resolver{problems: &problems{}, schema: r.schema, byName: r.byName, twice: r.twice,
			nullAs: r.nullAs}
		o := trial.columnOperand(columnRef{column: r.byName[name]}, absent, a)
		return o != nil && trial.runOperators(o, ops, 0, a, false) != nil
	})
	switch {
	case wrong != nil:
		r.addFound(a, wrong)
		return nil
	case len(found) != 1:
		r.add(a, ErrPattern, "%q names %d columns, want one", shorten(p.Text), len(found))
		return nil
	}
	a.column, _ = found[0].name(r.schema)
	return r.columnOperand(found[0], absent, a)
}

// runOperators applies ops from the given index on to a value. denseList says that a list goes to the dense tensor or
// the label, where operators of real numbers take its elements. It returns nil after an error.
func (r *resolver) runOperators(o *operand, ops []Op, from int, a location, denseList bool) *chain {
	first := ""
	if from < len(ops) {
		first = ops[from].Name
	}
	if !r.settle(o, usageOf(ops[from:], o.dest), first, a) {
		return nil
	}
	ch := &chain{r: r, column: &o.column, kind: o.kind, nulls: o.nulls, ids: o.ids, bounded: o.bounded,
		ops: slices.Clone(o.ops), denseList: denseList, vocabulary: o.vocabulary, encoding: o.encoding, from: o}
	for i := from; i < len(ops); i++ {
		if i > 0 && ops[i-1].Name == "fixed_length" {
			r.add(a.key("ops", a.pos).index(i, firstPos(ops[i].Pos, a.pos)), ErrValue, "%s behind fixed_length, which ends the "+
				"operators of a list", ops[i].Name)
			return nil
		}
		if endsInClasses(ch.ops) {
			r.add(a.key("ops", a.pos).index(i, firstPos(ops[i].Pos, a.pos)), ErrValue, "%s behind onehot, which ends the "+
				"operators of a dense feature", ops[i].Name)
			return nil
		}
		ch.written = ops[:i]
		ch.apply(&ops[i], a.key("ops", a.pos).index(i, firstPos(ops[i].Pos, a.pos)))
		if ch.failed {
			return nil
		}
	}
	return ch
}

// operand returns the value at the end of the chain.
func (c *chain) operand() *operand {
	end := *c.from
	end.ops, end.kind, end.nulls, end.ids, end.bounded = c.ops, c.kind, c.nulls, c.ids, c.bounded
	end.vocabulary, end.encoding = c.vocabulary, c.encoding
	return &end
}

// combineInputs applies ops to inputs: the first operator takes them together. absent says that partitions may lack
// columns of them. It returns nil after an error.
func (r *resolver) combineInputs(inputs []Pattern, ops []Op, absent bool, a location) *operand {
	c := &combination{chain: chain{r: r, entry: EntryOf(ops[0].Name)}}
	for i, p := range inputs {
		here := a.key("inputs", a.pos).index(i, firstPos(p.Pos, a.pos))
		o := r.operandOf(p, absent, here, nil)
		if o == nil {
			return nil
		}
		c.inputs, c.places = append(c.inputs, *o), append(c.places, here)
	}
	c.entry.Combine(&combinedOp{&ops[0], c, a.key("ops", a.pos).index(0, firstPos(ops[0].Pos, a.pos))})
	if c.failed {
		return nil
	}
	o := &c.value
	o.origin = origin{inputs: inputs, absent: absent}
	ch := r.runOperators(o, ops, 1, a, false)
	if ch == nil {
		return nil
	}
	if len(ch.ops) > program.MaxOps {
		r.add(a, ErrValue, "%d operators, conversions included, want at most %d", len(ch.ops), program.MaxOps)
		return nil
	}
	return ch.operand()
}

// combinedFeature resolves a group of inputs, which makes one feature. It returns nil after an error.
func (r *resolver) combinedFeature(g *Group, to program.Dest, a location) *Feature {
	a.column = g.As
	o := r.combineInputs(g.Inputs, g.Ops, g.AllowAbsent, a)
	if o == nil {
		return nil
	}
	return r.groupFeature(r.makeFeature(o, g.As, nil, to, a), g, a)
}

// valueFeature makes a feature of a named value. here is the place that names it, and a is the group's. It returns nil
// after an error.
func (r *resolver) valueFeature(v *valueState, g *Group, to program.Dest, index int, here, a location) *Feature {
	o := r.resolveValue(v, here)
	if o == nil {
		return nil
	}
	_, digits := splitNumber(v.spec.As)
	name, wrong := expandName(g.As, v.spec.As, digits, index)
	if wrong != "" {
		here.column = v.spec.As
		r.add(here, ErrPattern, "%s", wrong)
		return nil
	}
	a.column = v.spec.As
	return r.groupFeature(r.makeFeature(o, name, g.Ops, to, a), g, here)
}

// groupFeature sets what a feature has of its group. It returns nil after an error.
func (r *resolver) groupFeature(f *Feature, g *Group, here location) *Feature {
	if f == nil {
		return nil
	}
	f.group, f.DropScores = g, g.DropScores
	switch {
	case g.DropScores && !f.hasScores():
		r.add(here, ErrColumnType, "scores: drop, and it has none")
		return nil
	case f.movesIDs() != "":
		r.add(here, ErrColumnType, "%s moves ids, and each of them has a score; say scores: drop", f.movesIDs())
		return nil
	}
	return f
}

// combination is inputs on their way through the operator that takes them together. The chain has no column.
type combination struct {
	chain
	inputs []operand
	places []location
	value  operand // what the operator yields
}

// settleInput decides how an input is read, by the kind in which the operator takes it. It reports false after an
// error.
func (c *combination) settleInput(i int, o *Op, to program.Kind) bool {
	use := map[program.Kind]usage{program.Int64: usedAsIDs, program.Float32: usedAsFloat32,
		program.Float64: usedAsFloat64}[to]
	ok := c.r.settle(&c.inputs[i], use, o.Name, c.places[i])
	c.failed = c.failed || !ok
	return ok
}

// yield sets the value that the operator makes of the inputs.
func (c *combination) yield(o program.Combiner, ids idRange, bounded bool) {
	types := make([]program.ValueType, len(c.inputs))
	names := make([]string, len(c.inputs))
	for i := range c.inputs {
		types[i] = c.inputs[i].valueType()
		names[i] = c.inputs[i].column.Name
	}
	of, _ := o.Yield(types)
	s := &step{combine: o, inputs: c.inputs, yields: of}
	for i := range s.inputs {
		s.nullable = s.nullable || s.inputs[i].null(program.MalformedFail)
		s.nullableIfMalformed = s.nullableIfMalformed || s.inputs[i].null(program.MalformedNull)
	}
	c.value = operand{
		column: ColumnInfo{Name: shorten(strings.Join(names, " x ")), Source: c.inputs[0].column.Source, Kind: of.Kind,
			List: of.List},
		step: s, kind: of.Kind, ids: ids, bounded: bounded,
	}
}
