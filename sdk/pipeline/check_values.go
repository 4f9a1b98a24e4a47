package pipeline

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// checkValues checks the intermediate values, as far as that can be done without a dataset.
func (s *Spec) checkValues(p *problem.List) {
	if len(s.Values) > MaxGroups {
		p.Add(problem.Place{Path: "values"}, problem.ErrValue, "%d values, want at most %d", len(s.Values), MaxGroups)
		return
	}
	seen := make(map[string]bool, len(s.Values))
	for i := range s.Values {
		v := &s.Values[i]
		a := problem.Place{Path: "values"}.Index(i, v.Pos)
		switch {
		case v.As == "":
			p.Add(a, problem.ErrMissing, "as: the name of the value")
		case len(v.As) > MaxName || !utf8.ValidString(v.As):
			p.Add(a.Key("as", v.Pos), problem.ErrValue, "want at most %d bytes of UTF-8", MaxName)
		case seen[v.As]:
			p.Add(a.Key("as", v.Pos), problem.ErrDuplicate, "a second value named %q", problem.Shorten(v.As))
		}
		seen[v.As] = true
		switch given := v.From != (Pattern{}); {
		case given && len(v.Inputs) > 0:
			p.Add(a, problem.ErrValue, "from and inputs, want one of them")
		case !given && len(v.Inputs) == 0:
			p.Add(a, problem.ErrMissing, "from: a column or value, or inputs: several of them")
		}
		checkOperators(p, v.Ops, v.Inputs, a)
	}
}

// checkInputs checks a group that makes one feature of several inputs.
func (g *Group) checkInputs(p *problem.List, a problem.Place) {
	if len(g.Columns) > 0 {
		p.Add(a, problem.ErrValue, "columns and inputs, want one of them: columns make a feature each, inputs one together")
	}
	switch {
	case g.As == "":
		p.Add(a, problem.ErrMissing, "as: the name of the feature that the inputs make")
	case strings.ContainsAny(g.As, "{}"):
		p.Add(a.Key("as", g.Pos), problem.ErrValue, "%q: inputs make one feature, whose name has no braces",
			problem.Shorten(g.As))
	}
}

// place is where an operator stands: its index in the chain of a group or value, and the inputs of that.
type place struct {
	index  int
	inputs []Pattern
}

// admits checks that an operator may stand there: one that takes several inputs is the first, and the first operator of
// inputs is one that takes them.
func (at place) admits(p *problem.List, o *Op, entry *catalogue.Entry, a problem.Place) {
	behind := at.index > 0 || len(at.inputs) == 0 // takes one value
	switch {
	case entry.Inputs == 0 && !behind:
		p.Add(a, problem.ErrValue, "%s takes one value; the first operator of inputs takes them together: %s", o.Name,
			combinersText())
	case entry.Inputs > 0 && behind:
		p.Add(a, problem.ErrValue, "%s takes several inputs: write inputs: [a, b] instead of columns, or name a value, "+
			"and put %s first", o.Name, o.Name)
	case entry.Inputs > 0 && (len(at.inputs) < entry.Inputs || len(at.inputs) > mostInputs(entry)):
		p.Add(a, problem.ErrValue, "%s takes %s, and these are %d", o.Name, inputsText(entry), len(at.inputs))
	}
}

// combinersText lists the operators that take several inputs.
func combinersText() string {
	var names []string
	list := Catalogue()
	for i := range list {
		if o := &list[i]; o.Inputs > 0 {
			names = append(names, fmt.Sprintf("%s (%s)", o.Name, inputsText(o)))
		}
	}
	return strings.Join(names, ", ")
}

// mostInputs returns how many inputs an operator takes at most.
func mostInputs(o *catalogue.Entry) int { return max(o.Inputs, o.MaxInputs) }

// inputsText says how many inputs an operator takes.
func inputsText(o *catalogue.Entry) string {
	if mostInputs(o) > o.Inputs {
		return fmt.Sprintf("%d to %d inputs", o.Inputs, mostInputs(o))
	}
	return fmt.Sprintf("%d inputs", o.Inputs)
}

// declaredName is a name that a section of the document declares.
type declaredName struct {
	name string
	pos  Pos
}

// place returns where a section declares the name.
func (d declaredName) place(section string) problem.Place {
	return problem.Place{Path: section}.Key(problem.Shorten(d.name), d.pos)
}

// checkNames checks the names that a section declares, and that they and those that operators give, by nameOf, are the
// same. An operator that gives none has an empty name.
func (s *Spec) checkNames(p *problem.List, section string, names []declaredName, most int, kind error,
	nameOf func(o *Op) string) {
	if len(names) > most {
		p.Add(problem.Place{Path: section}, problem.ErrValue, "%d names, want at most %d", len(names), most)
		return
	}
	used, list := map[string]bool{}, make([]string, 0, len(names)) // by declared name, whether an operator gives it
	for _, d := range names {
		switch _, twice := used[d.name]; {
		case d.name == "" || len(d.name) > MaxName:
			p.Add(d.place(section), problem.ErrValue, "a name of %d bytes, want 1 to %d", len(d.name), MaxName)
		case twice:
			p.Add(d.place(section), problem.ErrDuplicate, "%q", problem.Shorten(d.name))
		}
		used[d.name], list = false, append(list, d.name)
	}
	s.eachChain(func(ops []Op, a problem.Place) {
		for i := range ops {
			name := nameOf(&ops[i])
			if _, declared := used[name]; name != "" && !declared {
				p.Add(a.Index(i, ops[i].Pos), kind, "%q is not among %s%s", problem.Shorten(name), section,
					problem.Suggest(name, list))
				continue
			}
			used[name] = true
		}
	})
	for _, d := range names {
		if !used[d.name] {
			p.Add(d.place(section), kind, "no operator names it")
		}
	}
}
