package pipeline

import (
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// Chain is a list of operators of a spec with what it is applied to.
type Chain struct {
	Section         string // The list that has it: label, values, dense, sparse or generated.
	Columns, Inputs []Pattern
	As              string
	Ops             *[]Op
	at              problem.Place
}

// Chains returns the lists of operators of the spec: of the label, the values and the groups.
func (s *Spec) Chains() []Chain {
	var list []Chain
	if l := s.Label; l != nil {
		list = append(list, Chain{Section: "label", Columns: Columns(l.Column), Ops: &l.Ops,
			at: problem.Place{Path: "label", Pos: l.Pos}.Key("ops", l.Pos)})
	}
	for i := range s.Values {
		v := &s.Values[i]
		c := Chain{Section: "values", Inputs: v.Inputs, As: v.As, Ops: &v.Ops,
			at: problem.Place{Path: "values"}.Index(i, v.Pos).Key("ops", v.Pos)}
		if len(v.Inputs) == 0 {
			c.Columns = []Pattern{v.From}
		}
		list = append(list, c)
	}
	for _, kind := range s.GroupLists() {
		for i := range kind.Groups {
			g := &kind.Groups[i]
			list = append(list, Chain{Section: kind.Name, Columns: g.Columns, Inputs: g.Inputs, As: g.As, Ops: &g.Ops,
				at: problem.Place{Path: kind.Name}.Index(i, g.Pos).Key("ops", g.Pos)})
		}
	}
	return list
}

// eachChain calls f with every list of operators of the spec, and its place.
func (s *Spec) eachChain(f func(ops []Op, a problem.Place)) {
	for _, c := range s.Chains() {
		f(*c.Ops, c.at)
	}
}

// withOwnChains returns a copy of the spec whose lists of operators can be replaced.
func (s *Spec) withOwnChains() *Spec {
	own := *s
	own.Values = slices.Clone(s.Values)
	own.Dense, own.Sparse, own.Generated = slices.Clone(s.Dense), slices.Clone(s.Sparse), slices.Clone(s.Generated)
	if s.Label != nil {
		label := *s.Label
		own.Label = &label
	}
	return &own
}

// GroupList is one of a spec's lists of groups.
type GroupList struct {
	Name   string
	To     program.Dest
	Groups []Group
}

// GroupLists returns the spec's lists of groups in the order of the document.
func (s *Spec) GroupLists() []GroupList {
	return []GroupList{{"dense", program.ToDense, s.Dense}, {"sparse", program.ToSparse, s.Sparse},
		{"generated", program.ToSparse, s.Generated}}
}

// TakeNamed gives the spec the values, statistics and modules of another spec that its groups and its filter name.
func (s *Spec) TakeNamed(of *Spec) {
	s.Values = s.reachableValues(of.Values)
	s.Statistics, s.Modules = s.namedStatistics(of.Statistics), s.namedModules(of.Modules)
}

// reachableValues returns the values of a list that the spec's groups and filter name, themselves or through other
// values.
func (s *Spec) reachableValues(list []NamedValue) (reachable []NamedValue) {
	named := map[string]bool{}
	name := func(patterns []Pattern) {
		for _, p := range patterns {
			named[p.Text] = true
		}
	}
	for _, k := range s.GroupLists() {
		for i := range k.Groups {
			name(k.Groups[i].Columns)
			name(k.Groups[i].Inputs)
		}
	}
	if s.Filter != nil {
		s.Filter.columns(func(column string) { named[column] = true })
	}
	for before := -1; before != len(named); {
		before = len(named)
		for i := range list {
			if named[list[i].As] {
				name(append([]Pattern{list[i].From}, list[i].Inputs...))
			}
		}
	}
	for i := range list {
		if named[list[i].As] {
			reachable = append(reachable, list[i])
		}
	}
	return reachable
}

// namedStatistics returns the statistics of a list that operators of the spec name.
func (s *Spec) namedStatistics(list []NamedStatistics) (named []NamedStatistics) {
	used := map[string]bool{}
	s.eachChain(func(ops []Op, _ problem.Place) {
		for i := range ops {
			used[ops[i].StatisticsName()] = true
		}
	})
	for i := range list {
		if used[list[i].Name] {
			named = append(named, list[i])
		}
	}
	return named
}

// namedModules returns the modules of a list that operators of the spec name.
func (s *Spec) namedModules(list []Module) []Module {
	names := s.moduleNames()
	return slices.DeleteFunc(slices.Clone(list), func(m Module) bool { return !slices.Contains(names, m.Name) })
}
