package pipeline

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// Filter chooses rows. Exactly one of All, Any, Not, Sampling and Comparisons is there.
type Filter struct {
	All, Any []Filter // every one of them, or at least one
	Not      *Filter
	// Comparisons of the values of one column or named value, each of which must hold. A row without a value passes
	// only `null: true`.
	Comparisons []Comparison
	Column      string
	Sampling    *Sampling
	// Path is the path that errors of package resolve name in place of the filter's own; empty: the filter's own. It is
	// not part of a document.
	Path string
	Pos  Pos
}

// Comparison compares a value with constants.
type Comparison struct {
	// Operator is eq, ne, lt, le, gt, ge, in, null or not_null. In a document the last two are "null: true" and
	// "null: false".
	Operator string
	Values   []Number // one; of in any number; of null and not_null none
	Pos      Pos
}

// Sampling keeps a share of the rows, the same in every run.
type Sampling struct {
	// Key is the column or named value whose values decide: rows of one value are kept or left out together. SamplingRow
	// decides each row for itself, by the name of its partition and its number.
	Key  string
	Rate float64 // 0 to 1
	Salt int64
	Pos  Pos
}

// SamplingRow is the key of a Sampling that decides each row for itself.
const SamplingRow = "row"

// The keys of a filter's mappings.
var (
	comparisonKeys = []string{"eq", "ne", "lt", "le", "gt", "ge", "in", "null"}
	filterKeys     = append([]string{"all", "any", "not", "sampling", "column"}, comparisonKeys...)
	samplingKeys   = []string{"key", "rate", "salt"}
)

// filter reads a filter, at a depth counted from 0.
func (p *parser) filter(n *yaml.Node, a problem.Place, depth int) Filter {
	f := Filter{Pos: a.Pos}
	if depth >= maxFilterDepth {
		p.Add(a, problem.ErrValue, "filters within filters, deeper than %d", maxFilterDepth)
		return f
	}
	list := func(n *yaml.Node, a problem.Place) (filters []Filter) {
		p.items(n, a, MaxFilterTests, "filters", func(n *yaml.Node, a problem.Place) {
			filters = append(filters, p.filter(n, a, depth+1))
		})
		if len(filters) == 0 && len(p.Errors) == 0 {
			p.Add(a, problem.ErrMissing, "at least one filter")
		}
		return filters
	}
	p.members(n, a, problem.ErrUnknownKey, filterKeys, func(key string, n *yaml.Node, a problem.Place) {
		switch key {
		case "all":
			f.All = list(n, a)
		case "any":
			f.Any = list(n, a)
		case "not":
			not := p.filter(n, a, depth+1)
			f.Not = &not
		case "sampling":
			f.Sampling = p.sampling(n, a)
		case "column":
			f.Column, _ = p.column(n, a)
		default:
			f.Comparisons = append(f.Comparisons, p.comparison(key, n, a))
		}
	})
	// The order of a mapping means nothing, so equal filters are equal.
	slices.SortStableFunc(f.Comparisons, func(a, b Comparison) int {
		return slices.Index(comparisonKeys, a.Key()) - slices.Index(comparisonKeys, b.Key())
	})
	return f
}

// comparison reads the constants of a comparison.
func (p *parser) comparison(key string, n *yaml.Node, a problem.Place) Comparison {
	c := Comparison{Operator: key, Pos: a.Pos}
	number := func(n *yaml.Node, a problem.Place) {
		if x, ok := p.number(n, a); ok {
			c.Values = append(c.Values, x)
		}
	}
	switch key {
	case "null":
		if !p.truth(n, a) {
			c.Operator = "not_null"
		}
	case "in":
		p.items(n, a, MaxFilterSet, "numbers", number)
	default:
		number(n, a)
	}
	return c
}

// Key returns the comparison's key in a document.
func (c *Comparison) Key() string {
	if c.Operator == "not_null" {
		return "null"
	}
	return c.Operator
}

// sampling reads a sampling.
func (p *parser) sampling(n *yaml.Node, a problem.Place) *Sampling {
	s := &Sampling{Pos: a.Pos}
	given := map[string]bool{}
	p.members(n, a, problem.ErrUnknownKey, samplingKeys, func(key string, n *yaml.Node, a problem.Place) {
		given[key] = true
		switch key {
		case "key":
			s.Key, _ = p.column(n, a)
		case "rate":
			if x, ok := p.number(n, a); ok {
				s.Rate = x.Real()
			}
		case "salt":
			if x, ok := p.number(n, a); ok {
				if s.Salt = x.Int; !x.Integer {
					p.Add(a, problem.ErrValue, "%s, want a whole number", x)
				}
			}
		}
	})
	for _, key := range samplingKeys[:2] {
		if !given[key] && len(p.Errors) == 0 {
			p.Add(a, problem.ErrMissing, "%s: %s", key, map[string]string{"key": "row, or a column whose values decide",
				"rate": "the share of the rows to keep, 0 to 1"}[key])
		}
	}
	return s
}

// checkFilter checks a spec's filter.
func (s *Spec) checkFilter(p *problem.List) {
	if s.Filter == nil {
		return
	}
	tests := 0
	s.Filter.checkTests(p, problem.Place{Path: "filter", Pos: s.Filter.Pos}, 0, &tests)
}

// checkTests checks the filter and what it holds, at a depth counted from 0, and counts its tests.
func (f *Filter) checkTests(p *problem.List, a problem.Place, depth int, tests *int) {
	if *tests++; *tests == MaxFilterTests+1 {
		p.Add(a, problem.ErrValue, "the filter has more than %d tests", MaxFilterTests)
	}
	if *tests > MaxFilterTests {
		return
	}
	if depth >= maxFilterDepth {
		p.Add(a, problem.ErrValue, "filters within filters, deeper than %d", maxFilterDepth)
		return
	}
	forms := 0
	for _, there := range []bool{f.All != nil, f.Any != nil, f.Not != nil, f.Sampling != nil,
		f.Comparisons != nil || f.Column != ""} {
		if there {
			forms++
		}
	}
	switch {
	case forms != 1:
		p.Add(a, problem.ErrValue, "want one of all, any, not, sampling, and column with a comparison")
	case f.All != nil, f.Any != nil:
		name, list := "all", f.All
		if f.Any != nil {
			name, list = "any", f.Any
		}
		if len(list) == 0 {
			p.Add(a, problem.ErrMissing, "%s: at least one filter", name)
		}
		for i := range list {
			list[i].checkTests(p, a.Key(name, a.Pos).Index(i, list[i].Pos), depth+1, tests)
		}
	case f.Not != nil:
		f.Not.checkTests(p, a.Key("not", f.Not.Pos), depth+1, tests)
	case f.Sampling != nil:
		f.Sampling.checkParameters(p, a.Key("sampling", f.Sampling.Pos))
	case len(f.Comparisons) == 0:
		p.Add(a, problem.ErrMissing, "a comparison: %s", strings.Join(comparisonKeys, ", "))
	case len(f.Column) > MaxName:
		p.Add(a, problem.ErrValue, "a column's name of %d bytes, want at most %d", len(f.Column), MaxName)
	default:
		seen := map[string]bool{}
		for i := range f.Comparisons {
			c := &f.Comparisons[i]
			here := a.Key(problem.Shorten(c.Key()), c.Pos)
			if seen[c.Key()] {
				p.Add(here, problem.ErrDuplicate, "%q", problem.Shorten(c.Key()))
			}
			seen[c.Key()] = true
			c.checkConstants(p, here)
		}
	}
}

// checkConstants checks a comparison's constants.
func (c *Comparison) checkConstants(p *problem.List, a problem.Place) {
	least, most := 1, 1
	switch c.Operator {
	case "null", "not_null":
		least, most = 0, 0
	case "in":
		most = MaxFilterSet
	case "eq", "ne", "lt", "le", "gt", "ge":
	default:
		p.Add(a, problem.ErrUnknownKey, "%q, want one of %s", problem.Shorten(c.Operator), strings.Join(comparisonKeys, ", "))
		return
	}
	if n := len(c.Values); n < least || n > most {
		p.Add(a, problem.ErrValue, "%d values, want %d to %d", n, least, most)
		return
	}
	for _, x := range c.Values {
		if !x.Finite() {
			p.Add(a, problem.ErrValue, "%s, want a finite number", x)
		}
	}
}

// checkParameters checks a sampling's parameters.
func (s *Sampling) checkParameters(p *problem.List, a problem.Place) {
	switch {
	case s.Key == "" || len(s.Key) > MaxName:
		p.Add(a, problem.ErrValue, "a key of %d bytes, want row or the name of a column, of 1 to %d bytes", len(s.Key),
			MaxName)
	case !(s.Rate >= 0 && s.Rate <= 1):
		p.Add(a, problem.ErrValue, "rate %v, want 0 to 1", s.Rate)
	}
}

// columns calls f for each column or value that the filter names.
func (f *Filter) columns(name func(string)) {
	for _, list := range [][]Filter{f.All, f.Any} {
		for i := range list {
			list[i].columns(name)
		}
	}
	switch {
	case f.Not != nil:
		f.Not.columns(name)
	case f.Sampling != nil && f.Sampling.Key != SamplingRow:
		name(f.Sampling.Key)
	case len(f.Comparisons) > 0:
		name(f.Column)
	}
}
