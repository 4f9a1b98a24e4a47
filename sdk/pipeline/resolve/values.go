package resolve

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// Operand is a value on its way to steps and features: a column or a step's value, behind a chain of operators.
type Operand struct {
	vocabulary *pipeline.Vocabulary // nil: no vocabulary ended the operators.
	encoding   *featureEncoding     // nil: no target encoding ended the operators.
	Column     columntypes.Column   // the column, or a description of the step's value; see scored
	Key        int64                // The key of a map whose keys are numbers.
	Text       string               // The key of a map whose keys are text.
	Step       *Step                // nil: the value is the column's
	Ops        []program.Op
	shared     int  // how many of the first ops belong to a named value
	Absent     bool // partitions may lack the column
	kind       program.Kind
	nulls      nullness
	ids        catalogue.Range
	bounded    bool
	origin     origin       // what a document names for the value
	dest       program.Dest // tensor that the value ends in; 0 if operators of other chains take it
	settled    bool         // settle has decided how the column is read
}

// Step is an operator of several inputs with its inputs. Steps are compared by their content, not by their place.
type Step struct {
	Combine program.Combiner
	Inputs  []Operand
	Yields  program.ValueType
	// A row can lack the value, and can if the cells of malformed rows are null. Both are known once: a step may take
	// each step before it twice, so that a walk over all that it takes would not end.
	nullable, nullableIfMalformed bool
}

// null reports whether a row can lack the value.
func (o *Operand) null(m program.Malformed) bool {
	in := o.Column.Nullable || o.Column.Source == program.CriteoTSV && m == program.MalformedNull
	if o.Step != nil {
		in = o.Step.nullable || m == program.MalformedNull && o.Step.nullableIfMalformed
	}
	return in && !o.nulls.fills || o.nulls.makes
}

// valueState is a named value and how far it is resolved.
type valueState struct {
	spec     *pipeline.NamedValue
	location problem.Place
	busy     bool // it is being resolved
	resolved bool
	operand  *Operand // nil after an error
	used     bool
}

// declareValues takes in the names of the spec's values.
func (r *resolver) declareValues(values []pipeline.NamedValue) {
	r.values = make(map[string]*valueState, len(values))
	for i := range values {
		v := &valueState{spec: &values[i], location: problem.Place{Path: "values"}.Index(i, values[i].Pos)}
		if _, column := r.byName[v.spec.As]; column {
			r.Add(v.location.Key("as", v.location.Pos), problem.ErrDuplicate, "%q is a column of the dataset; give the value "+
				"another name", problem.Shorten(v.spec.As))
		}
		r.values[v.spec.As] = v
		r.order = append(r.order, v)
	}
}

// refuseUnusedValues refuses values that no feature is made of.
func (r *resolver) refuseUnusedValues() {
	for _, v := range r.order {
		if !v.used && !r.stopped() {
			r.Add(v.location, problem.ErrUnused, "no group and no other value names %q; remove it", problem.Shorten(v.spec.As))
		}
	}
}

// resolveValue returns what a named value stands for. where is the place that names the value. It returns nil after an
// error.
func (r *resolver) resolveValue(v *valueState, where problem.Place) *Operand {
	v.used = true
	switch {
	case v.busy:
		r.Add(where, problem.ErrCycle, "%q is made of itself", problem.Shorten(v.spec.As))
		return nil
	case v.resolved:
		return v.operand
	}
	v.busy = true
	a := v.location
	a.Column = v.spec.As
	if len(v.spec.Inputs) > 0 {
		v.operand = r.combineInputs(v.spec.Inputs, v.spec.Ops, v.spec.AllowAbsent, a)
	} else if o := r.operandOf(v.spec.From, v.spec.AllowAbsent, a.Key("from", v.spec.From.Pos),
		v.spec.Ops); o != nil {
		from := *o
		if ch := r.runOperators(&from, v.spec.Ops, 0, a, false); ch != nil {
			v.operand = ch.operand()
		}
	}
	if v.operand != nil && v.operand.Step != nil && v.operand.scored() && v.operand.kind != program.Int64 {
		r.Add(a, problem.ErrColumnType,
			"ids with scores become %v, and only ids have scores; take the scores with the operator "+
				"scores", v.operand.kind)
		v.operand = nil
	}
	if v.operand != nil && v.operand.Step != nil && v.operand.scored() && program.MovesIDs(v.operand.Ops) != "" {
		r.Add(a, problem.ErrColumnType,
			"%s moves ids, and each of them has a score; put it before the operator that makes the "+
				"scores, or into a group that says scores: drop", program.MovesIDs(v.operand.Ops))
		v.operand = nil
	}
	if v.operand != nil && endsInClasses(v.operand.Ops) {
		r.Add(a, problem.ErrValue, "onehot makes dense columns, and no value that others take; put it to a group of dense")
		v.operand = nil
	}
	if v.operand != nil {
		v.operand.shared = len(v.operand.Ops)
		v.operand.origin = origin{columns: pipeline.Columns(v.spec.As)}
	}
	v.busy, v.resolved = false, true
	return v.operand
}

// operandOf returns the one column or value that a pattern names. absent says that partitions may lack the column. ops
// are applied to it afterwards: a column that they do not take is not proposed in an error. It returns nil after an
// error.
func (r *resolver) operandOf(p pipeline.Pattern, absent bool, a problem.Place, ops []pipeline.Op) *Operand {
	if v := r.values[p.Text]; v != nil {
		return r.resolveValue(v, a)
	}
	found, wrong := r.Match(p.Text, func(name string) bool {
		trial := r.trial()
		o := trial.columnOperand(Reference{Column: r.byName[name]}, absent, a)
		return o != nil && trial.runOperators(o, ops, 0, a, false) != nil
	})
	switch {
	case wrong != nil:
		r.AddFound(a, wrong)
		return nil
	case len(found) != 1:
		r.Add(a, problem.ErrPattern, "%q names %d columns, want one", problem.Shorten(p.Text), len(found))
		return nil
	}
	a.Column, _ = found[0].Name(r.schema)
	return r.columnOperand(found[0], absent, a)
}

// runOperators applies ops from the given index on to a value. denseList says that a list goes to the dense tensor or
// the label, where operators of real numbers take its elements. It returns nil after an error.
func (r *resolver) runOperators(o *Operand, ops []pipeline.Op, from int, a problem.Place, denseList bool) *chain {
	first := ""
	if from < len(ops) {
		first = ops[from].Name
	}
	if !r.settle(o, usageOf(ops[from:], o.dest), first, a) {
		return nil
	}
	ch := &chain{r: r, column: &o.Column, kind: o.kind, nulls: o.nulls, ids: o.ids, bounded: o.bounded,
		ops: slices.Clone(o.Ops), denseList: denseList, vocabulary: o.vocabulary, encoding: o.encoding, from: o}
	for i := from; i < len(ops); i++ {
		if i > 0 && ops[i-1].Name == "fixed_length" {
			r.Add(a.Key("ops", a.Pos).Index(i, ops[i].Pos), problem.ErrValue,
				"%s behind fixed_length, which ends the "+
					"operators of a list", ops[i].Name)
			return nil
		}
		if endsInClasses(ch.ops) {
			r.Add(a.Key("ops", a.Pos).Index(i, ops[i].Pos), problem.ErrValue,
				"%s behind onehot, which ends the "+
					"operators of a dense feature", ops[i].Name)
			return nil
		}
		ch.written = ops[:i]
		ch.apply(&ops[i], a.Key("ops", a.Pos).Index(i, ops[i].Pos))
		if ch.failed {
			return nil
		}
	}
	return ch
}

// operand returns the value at the end of the chain.
func (c *chain) operand() *Operand {
	end := *c.from
	end.Ops, end.kind, end.nulls, end.ids, end.bounded = c.ops, c.kind, c.nulls, c.ids, c.bounded
	end.vocabulary, end.encoding = c.vocabulary, c.encoding
	return &end
}

// combineInputs applies ops to inputs: the first operator takes them together. absent says that partitions may lack
// columns of them. It returns nil after an error.
func (r *resolver) combineInputs(inputs []pipeline.Pattern, ops []pipeline.Op, absent bool, a problem.Place) *Operand {
	c := &combination{chain: chain{r: r, Op: &ops[0], at: a.Key("ops", a.Pos).Index(0, ops[0].Pos)}}
	for i, p := range inputs {
		here := a.Key("inputs", a.Pos).Index(i, p.Pos)
		o := r.operandOf(p, absent, here, nil)
		if o == nil {
			return nil
		}
		c.inputs, c.places = append(c.inputs, *o), append(c.places, here)
	}
	pipeline.EntryOf(c.Name).Combine(c)
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
		r.Add(a, problem.ErrValue, "%d operators, conversions included, want at most %d", len(ch.ops), program.MaxOps)
		return nil
	}
	return ch.operand()
}

// combinedFeature resolves a group of inputs, which makes one feature. It returns nil after an error.
func (r *resolver) combinedFeature(g *pipeline.Group, to program.Dest, a problem.Place) *Feature {
	a.Column = g.As
	o := r.combineInputs(g.Inputs, g.Ops, g.AllowAbsent, a)
	if o == nil {
		return nil
	}
	return r.groupFeature(r.makeFeature(o, g.As, nil, to, a), g, a)
}

// valueFeature makes a feature of a named value. here is the place that names it, and a is the group's. It returns nil
// after an error.
func (r *resolver) valueFeature(v *valueState, g *pipeline.Group, to program.Dest, index int, here,
	a problem.Place) *Feature {
	o := r.resolveValue(v, here)
	if o == nil {
		return nil
	}
	_, digits := pipeline.SplitNumber(v.spec.As)
	name, wrong := pipeline.FeatureName(g.As, v.spec.As, digits, index)
	if wrong != "" {
		here.Column = v.spec.As
		r.Add(here, problem.ErrPattern, "%s", wrong)
		return nil
	}
	a.Column = v.spec.As
	return r.groupFeature(r.makeFeature(o, name, g.Ops, to, a), g, here)
}

// groupFeature sets what a feature has of its group. It returns nil after an error.
func (r *resolver) groupFeature(f *Feature, g *pipeline.Group, here problem.Place) *Feature {
	if f == nil {
		return nil
	}
	f.group, f.DropScores = g, g.DropScores
	switch {
	case g.DropScores && !f.hasScores():
		r.Add(here, problem.ErrColumnType, "scores: drop, and it has none")
		return nil
	case f.movesIDs() != "":
		r.Add(here, problem.ErrColumnType, "%s moves ids, and each of them has a score; say scores: drop", f.movesIDs())
		return nil
	}
	return f
}

// combination is inputs on their way through the operator that takes them together. The chain has no column.
type combination struct {
	chain
	inputs []Operand
	places []problem.Place
	value  Operand // what the operator yields
}

// settleInput decides how an input is read, by the kind in which the operator takes it. It reports false after an
// error.
func (c *combination) settleInput(i int, to program.Kind) bool {
	use := map[program.Kind]catalogue.Use{program.Int64: catalogue.UsedAsIDs, program.Float32: catalogue.UsedAsFloat32,
		program.Float64: catalogue.UsedAsFloat64}[to]
	ok := c.r.settle(&c.inputs[i], use, c.Name, c.places[i])
	c.failed = c.failed || !ok
	return ok
}

// yield sets the value that the operator makes of the inputs.
func (c *combination) yield(o program.Combiner, ids catalogue.Range, bounded bool) {
	types := make([]program.ValueType, len(c.inputs))
	names := make([]string, len(c.inputs))
	for i := range c.inputs {
		types[i] = c.inputs[i].valueType()
		names[i] = c.inputs[i].Column.Name
	}
	of, _ := o.Yield(types)
	s := &Step{Combine: o, Inputs: c.inputs, Yields: of}
	for i := range s.Inputs {
		s.nullable = s.nullable || s.Inputs[i].null(program.MalformedFail)
		s.nullableIfMalformed = s.nullableIfMalformed || s.Inputs[i].null(program.MalformedNull)
	}
	c.value = Operand{
		Column: columntypes.Column{Name: problem.Shorten(strings.Join(names, " x ")), Source: c.inputs[0].Column.Source,
			Kind: of.Kind,
			List: of.List},
		Step: s, kind: of.Kind, ids: ids, bounded: bounded,
	}
}
