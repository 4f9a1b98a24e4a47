package pipeline

import (
	"github.com/millrace/millrace/fpga/operator/scores"
	"github.com/millrace/millrace/fpga/program"
)

// stepSet numbers steps, each once: steps with the same operator and inputs are the same, however they are written. A
// step comes behind the steps that it takes.
type stepSet struct {
	list    []string       // canonical forms
	byForm  map[string]int // numbers in list
	byPlace map[*step]int  // of steps met before, so that a shared step is written once
}

// source writes what a feature or input is made of: a column, or the number of a step.
func (c *canonical) source(column *ColumnInfo, s *step) string {
	part := canonical{}
	if s == nil {
		return string(part.str(`"column":`).text(column.Name).b)
	}
	return string(part.str(`"step":`).int(int64(c.step(s))).b)
}

// step returns the number of a step, and adds it if it is new.
func (c *canonical) step(s *step) int {
	set := &c.steps
	if n, ok := set.byPlace[s]; ok {
		return n
	}
	part := canonical{}
	part.str(`{`).combiner(s.combine).str(`,"inputs":[`)
	for i := range s.inputs {
		in := &s.inputs[i]
		source := c.source(&in.column, in.step)
		if in.ofMap() {
			_, scored := s.combine.(scores.Op)
			key := canonical{}
			source += string(key.str(`,"key":`).mapKey(&in.column.Map, in.key, in.text).str(`,"scores":`).bool(scored).b)
		}
		part.tables = c.tables
		part.comma(i).str(`{`+source+`,`).chain(&in.column, in.ops).str(`}`)
		c.tables = part.tables
	}
	form := string(part.str(`]}`).b)
	n, ok := set.byForm[form]
	if !ok {
		n = len(set.list)
		set.list = append(set.list, form)
	}
	if set.byForm == nil {
		set.byForm, set.byPlace = make(map[string]int), make(map[*step]int)
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
