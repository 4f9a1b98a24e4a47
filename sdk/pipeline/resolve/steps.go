package resolve

import (
	"github.com/millrace/millrace/fpga/operator/scores"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

// OfMap reports whether the value is a feature of a map, and no step's.
func (o *Operand) OfMap() bool { return o.Step == nil && o.Column.Map.IsMap() }

// Forms numbers the steps of a pipeline, each once, and names chains of operators, so that equal ones are found.
type Forms struct{ canonical canonical }

// Number returns the number of a step.
func (f *Forms) Number(s *Step) int { return f.canonical.step(s) }

// Chain returns the form of operators behind values of a type.
func (f *Forms) Chain(of program.ValueType, ops []program.Op) string {
	c := canonical{tables: f.canonical.tables}
	c.chain(&columntypes.Column{Kind: of.Kind, List: of.List}, ops)
	f.canonical.tables = c.tables
	return string(c.b)
}

// stepSet numbers steps, each once: steps with the same operator and inputs are the same, however they are written. A
// step comes behind the steps that it takes.
type stepSet struct {
	list    []string       // canonical forms
	byForm  map[string]int // numbers in list
	byPlace map[*Step]int  // A shared step is found here, and not written again.
}

// source writes what a feature or input is made of: a column, or the number of a step.
func (c *canonical) source(column *columntypes.Column, s *Step) string {
	part := canonical{}
	if s == nil {
		return string(part.str(`"column":`).text(column.Name).b)
	}
	return string(part.str(`"step":`).int(int64(c.step(s))).b)
}

// step returns the number of a step, and adds it if it is new.
func (c *canonical) step(s *Step) int {
	set := &c.steps
	if n, ok := set.byPlace[s]; ok {
		return n
	}
	part := canonical{}
	part.str(`{`).combiner(s.Combine).str(`,"inputs":[`)
	for i := range s.Inputs {
		in := &s.Inputs[i]
		source := c.source(&in.Column, in.Step)
		if in.OfMap() {
			_, scored := s.Combine.(scores.Op)
			key := canonical{}
			source += string(key.str(`,"key":`).mapKey(&in.Column.Map, in.Key, in.Text).str(`,"scores":`).bool(scored).b)
		}
		part.tables = c.tables
		part.comma(i).str(`{`+source+`,`).chain(&in.Column, in.Ops).str(`}`)
		c.tables = part.tables
	}
	form := string(part.str(`]}`).b)
	n, ok := set.byForm[form]
	if !ok {
		n = len(set.list)
		set.list = append(set.list, form)
	}
	if set.byForm == nil {
		set.byForm, set.byPlace = make(map[string]int), make(map[*Step]int)
	}
	set.byForm[form], set.byPlace[s] = n, n
	return n
}

// combiner writes an operator of several inputs with its parameters.
func (c *canonical) combiner(o program.Combiner) *canonical {
	c.str(`"` + o.Unit().String() + `":{`)
	o.Fields(&canonicalFields{c: c})
	return c.str(`}`)
}
