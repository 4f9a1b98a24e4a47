package pipeline

import (
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ErrSelection says that the selection of a pipeline with a filter is not there, or is not of this pipeline and data
// set.
var ErrSelection = errors.New("selection does not fit")

// Filter chooses rows. Exactly one of All, Any, Not, Sampling and Comparisons is there.
type Filter struct {
	All, Any []Filter // every one of them, or at least one
	Not      *Filter
	// Comparisons of the values of one column or named value, each of which must hold. A row without a value passes
	// only `null: true`.
	Comparisons []Comparison
	Column      string
	Sampling    *Sampling
	Pos         Pos
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
func (p *parser) filter(n *yaml.Node, a location, depth int) Filter {
	f := Filter{Pos: a.pos}
	if depth >= maxFilterDepth {
		p.add(a, ErrValue, "filters within filters, deeper than %d", maxFilterDepth)
		return f
	}
	list := func(n *yaml.Node, a location) (filters []Filter) {
		p.items(n, a, MaxFilterTests, "filters", func(n *yaml.Node, a location) {
			filters = append(filters, p.filter(n, a, depth+1))
		})
		if len(filters) == 0 && len(p.list) == 0 {
			p.add(a, ErrMissing, "at least one filter")
		}
		return filters
	}
	p.members(n, a, ErrUnknownKey, filterKeys, func(key string, n *yaml.Node, a location) {
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
		return slices.Index(comparisonKeys, a.key()) - slices.Index(comparisonKeys, b.key())
	})
	return f
}

// comparison reads the constants of a comparison.
func (p *parser) comparison(key string, n *yaml.Node, a location) Comparison {
	c := Comparison{Operator: key, Pos: a.pos}
	number := func(n *yaml.Node, a location) {
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

// key returns the comparison's key in a document.
func (c *Comparison) key() string {
	if c.Operator == "not_null" {
		return "null"
	}
	return c.Operator
}

// sampling reads a sampling.
func (p *parser) sampling(n *yaml.Node, a location) *Sampling {
	s := &Sampling{Pos: a.pos}
	given := map[string]bool{}
	p.members(n, a, ErrUnknownKey, samplingKeys, func(key string, n *yaml.Node, a location) {
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
					p.add(a, ErrValue, "%s, want a whole number", x)
				}
			}
		}
	})
	for _, key := range samplingKeys[:2] {
		if !given[key] && len(p.list) == 0 {
			p.add(a, ErrMissing, "%s: %s", key, map[string]string{"key": "row, or a column whose values decide",
				"rate": "the share of the rows to keep, 0 to 1"}[key])
		}
	}
	return s
}

// checkFilter checks a spec's filter.
func (s *Spec) checkFilter(p *problems) {
	if s.Filter == nil {
		return
	}
	tests := 0
	s.Filter.check(p, location{path: "filter", pos: s.Filter.Pos}, 0, &tests)
}

func (f *Filter) check(p *problems, a location, depth int, tests *int) {
	if *tests++; *tests == MaxFilterTests+1 {
		p.add(a, ErrValue, "the filter has more than %d tests", MaxFilterTests)
	}
	if *tests > MaxFilterTests {
		return
	}
	if depth >= maxFilterDepth {
		p.add(a, ErrValue, "filters within filters, deeper than %d", maxFilterDepth)
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
		p.add(a, ErrValue, "want one of all, any, not, sampling, and column with a comparison")
	case f.All != nil, f.Any != nil:
		name, list := "all", f.All
		if f.Any != nil {
			name, list = "any", f.Any
		}
		if len(list) == 0 {
			p.add(a, ErrMissing, "%s: at least one filter", name)
		}
		for i := range list {
			list[i].check(p, a.key(name, a.pos).index(i, firstPos(list[i].Pos, a.pos)), depth+1, tests)
		}
	case f.Not != nil:
		f.Not.check(p, a.key("not", firstPos(f.Not.Pos, a.pos)), depth+1, tests)
	case f.Sampling != nil:
		f.Sampling.check(p, a.key("sampling", firstPos(f.Sampling.Pos, a.pos)))
	case len(f.Comparisons) == 0:
		p.add(a, ErrMissing, "a comparison: %s", strings.Join(comparisonKeys, ", "))
	case len(f.Column) > MaxName:
		p.add(a, ErrValue, "a column's name of %d bytes, want at most %d", len(f.Column), MaxName)
	default:
		seen := map[string]bool{}
		for i := range f.Comparisons {
			c := &f.Comparisons[i]
			here := a.key(shorten(c.key()), firstPos(c.Pos, a.pos))
			if seen[c.key()] {
				p.add(here, ErrDuplicate, "%q", shorten(c.key()))
			}
			seen[c.key()] = true
			c.check(p, here)
		}
	}
}

// check checks a comparison's constants.
func (c *Comparison) check(p *problems, a location) {
	least, most := 1, 1
	switch c.Operator {
	case "null", "not_null":
		least, most = 0, 0
	case "in":
		most = MaxFilterSet
	case "eq", "ne", "lt", "le", "gt", "ge":
	default:
		p.add(a, ErrUnknownKey, "%q, want one of %s", shorten(c.Operator), strings.Join(comparisonKeys, ", "))
		return
	}
	if n := len(c.Values); n < least || n > most {
		p.add(a, ErrValue, "%d values, want %d to %d", n, least, most)
		return
	}
	for _, x := range c.Values {
		if !x.Finite() {
			p.add(a, ErrValue, "%s, want a finite number", x)
		}
	}
}

// check checks a sampling's parameters.
func (s *Sampling) check(p *problems, a location) {
	switch {
	case s.Key == "" || len(s.Key) > MaxName:
		p.add(a, ErrValue, "a key of %d bytes, want row or the name of a column, of 1 to %d bytes", len(s.Key), MaxName)
	case !(s.Rate >= 0 && s.Rate <= 1):
		p.add(a, ErrValue, "rate %v, want 0 to 1", s.Rate)
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
