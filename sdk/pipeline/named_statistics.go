package pipeline

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/summary"
	"github.com/millrace/millrace/sdk/targetencoding"
)

// StatisticsParameter is the parameter of operators that names statistics.
const StatisticsParameter = catalogue.StatisticsParameter

// fillMedianOperator is the name of the operator that takes medians.
const fillMedianOperator = "fill_median"

// NamedStatistics are the statistics that operators take their constants from.
type NamedStatistics struct {
	Name    string
	Summary summary.Digest    // The file that they come from; zero: none.
	Values  []ValueStatistics // ordered by their names; nil: none are at hand. See [Spec.BindStatistics]
	Pos     Pos
}

// ValueStatistics are the statistics of one value: of a column, or of what operators make of it. Fields are nil where
// the value has none.
type ValueStatistics struct {
	Name            string // see [Spec.StatisticsPass]
	Mean, Deviation *float64
	Min, Max        *float64
	Median          *float64 // the quantile of the rank 0.5
	Targets         *targetencoding.Table
}

// BindStatistics returns the spec with the numbers of a summary for one of its statistics: those of the columns that
// have an order. The numbers become part of the document, so that whoever reads the document needs no summary. The
// receiver does not change.
func (s *Spec) BindStatistics(name string, file *summary.Summary, digest summary.Digest) (*Spec, error) {
	var p problem.List
	i := slices.IndexFunc(s.Statistics, func(n NamedStatistics) bool { return n.Name == name })
	if i < 0 {
		p.Add(problem.Place{Path: "statistics"}, problem.ErrStatistics, "the pipeline has no statistics %q%s",
			problem.Shorten(name),
			problem.Suggest(name, s.statisticsNames()))
		return nil, p.Err()
	}
	bound := *s
	bound.Statistics = slices.Clone(s.Statistics)
	n := &bound.Statistics[i]
	n.Summary, n.Values = digest, []ValueStatistics{}
	medians := s.takesMedians(name) // otherwise builds from before fill_median read the document, too
	for j := range file.Columns {
		c := &file.Columns[j]
		if c.Kind != summary.Integers && c.Kind != summary.Reals || c.List || len(c.Name) > MaxName {
			continue
		}
		if c.Targets != nil { // nothing else is taken of such a column
			n.Values = append(n.Values, ValueStatistics{Name: c.Name, Targets: c.Targets})
			continue
		}
		v := ValueStatistics{Name: c.Name, Mean: c.Mean, Deviation: c.Deviation}
		if c.Least != nil && c.Greatest != nil {
			least, greatest := c.Least.Real(), c.Greatest.Real()
			v.Min, v.Max = &least, &greatest
		}
		if medians && len(c.Quantiles) == summary.Quantiles {
			median := c.Quantiles[summary.Quantiles/2].Real()
			v.Median = &median
		}
		n.Values = append(n.Values, v)
	}
	slices.SortFunc(n.Values, func(a, b ValueStatistics) int { return strings.Compare(a.Name, b.Name) })
	if len(n.Values) > MaxStatisticsValues {
		p.Add(problem.Place{Path: "statistics"}.Key(problem.Shorten(name), n.Pos), problem.ErrStatistics,
			"the summary has statistics of %d "+
				"columns, want at most %d: summarize fewer columns, as millrace dataset summarize --pipeline does", len(n.Values),
			MaxStatisticsValues)
		return nil, p.Err()
	}
	return &bound, nil
}

// takesMedians reports whether an operator takes the median of statistics.
func (s *Spec) takesMedians(name string) (takes bool) {
	s.eachChain(func(ops []Op, _ problem.Place) {
		for i := range ops {
			takes = takes || ops[i].Name == fillMedianOperator && ops[i].StatisticsName() == name
		}
	})
	return takes
}

func (s *Spec) statisticsNames() []string {
	names := make([]string, len(s.Statistics))
	for i := range s.Statistics {
		names[i] = s.Statistics[i].Name
	}
	return names
}

// Find returns the statistics of a value, or nil if there are none.
func (n *NamedStatistics) Find(value string) *ValueStatistics {
	i, ok := slices.BinarySearchFunc(n.Values, value, func(v ValueStatistics, name string) int {
		return strings.Compare(v.Name, name)
	})
	if !ok {
		return nil
	}
	return &n.Values[i]
}

// StatisticsName returns the name of the statistics that an operator takes its constants from, or "" if it has
// constants of its own.
func (o *Op) StatisticsName() string {
	v, _ := o.Given(StatisticsParameter)
	name, _ := v.(Text)
	return string(name)
}

// The keys of statistics, and of one value's.
var (
	statisticsKeys      = []string{"summary", "values"}
	numberKeys          = []string{"mean", "deviation", "min", "max", "median"}
	valueStatisticsKeys = append(slices.Clone(numberKeys), targetsKey)
)

// targetsKey is the key of a table of targets.
const targetsKey = "targets"

// statistics reads the declarations.
func (p *parser) statistics(n *yaml.Node, a problem.Place) []NamedStatistics {
	var list []NamedStatistics
	p.named(n, a, MaxStatistics, "statistics", func(name string, n *yaml.Node, here problem.Place) {
		s := p.oneStatistics(n, here)
		s.Name, s.Pos = name, here.Pos
		list = append(list, s)
	})
	return list
}

// named calls f for each member of a mapping whose keys are names.
func (p *parser) named(n *yaml.Node, a problem.Place, limit int, of string,
	f func(name string, n *yaml.Node, here problem.Place)) {
	n = p.follow(n, a)
	if n.Kind != yaml.MappingNode {
		p.Add(a, problem.ErrValue, "%s, want a mapping of names to %s", describe(n), of)
		return
	}
	if len(n.Content)/2 > limit {
		p.Add(a, problem.ErrValue, "%s of %d names, want at most %d", of, len(n.Content)/2, limit)
		return
	}
	for i := 0; i+1 < len(n.Content) && !p.stopped(); i += 2 {
		at := problem.Place{Pos: position(n.Content[i]), Path: a.Path}
		if name := p.text(n.Content[i], at, "a name"); name != "" {
			f(name, n.Content[i+1], a.Key(problem.Shorten(name), position(n.Content[i])))
		}
	}
}

// oneStatistics reads one declaration. Nothing declares statistics that a file will give.
func (p *parser) oneStatistics(n *yaml.Node, a problem.Place) NamedStatistics {
	var s NamedStatistics
	if value := p.follow(n, a); value.Kind == yaml.ScalarNode && value.ShortTag() == "!!null" {
		return s
	}
	p.members(n, a, problem.ErrUnknownKey, statisticsKeys, func(key string, n *yaml.Node, a problem.Place) {
		if key == "summary" {
			text := p.text(n, a, "the SHA-256 of a summary")
			if text != "" && (strings.ToLower(text) != text || s.Summary.UnmarshalText([]byte(text)) != nil) {
				p.Add(a, problem.ErrValue, "%q, want the SHA-256 of a summary in 64 lower-case hexadecimal digits",
					problem.Shorten(text))
			}
			return
		}
		s.Values = []ValueStatistics{}
		p.named(n, a, MaxStatisticsValues, "values", func(name string, n *yaml.Node, here problem.Place) {
			v := ValueStatistics{Name: name}
			p.members(n, here, problem.ErrUnknownKey, valueStatisticsKeys, func(key string, n *yaml.Node, a problem.Place) {
				if key == targetsKey {
					v.Targets = p.targets(n, a)
					return
				}
				x, ok := p.number(n, a)
				if !ok {
					return
				}
				if !x.Finite() {
					p.Add(a, problem.ErrValue, "%s, want a finite number", x)
					return
				}
				number := x.Real()
				*v.field(key) = &number
			})
			s.Values = append(s.Values, v)
		})
		slices.SortStableFunc(s.Values, func(a, b ValueStatistics) int { return strings.Compare(a.Name, b.Name) })
	})
	return s
}

// targets reads a table of targets in base64.
func (p *parser) targets(n *yaml.Node, a problem.Place) *targetencoding.Table {
	value := p.follow(n, a)
	t := &targetencoding.Table{}
	if value.Kind != yaml.ScalarNode {
		p.Add(a, problem.ErrValue, "%s, want a table in base64", describe(value))
		return nil
	}
	if err := t.UnmarshalText([]byte(value.Value)); err != nil {
		p.Add(a, problem.ErrValue, "%v; millrace dataset summarize makes tables", err)
		return nil
	}
	return t
}

// field returns the field of a key that has a number.
func (v *ValueStatistics) field(key string) **float64 {
	switch key {
	case "mean":
		return &v.Mean
	case "deviation":
		return &v.Deviation
	case "min":
		return &v.Min
	case "max":
		return &v.Max
	}
	return &v.Median
}

// checkStatistics checks the declarations, and that operators and declarations name each other.
func (s *Spec) checkStatistics(p *problem.List) {
	names := make([]declaredName, len(s.Statistics))
	for i := range s.Statistics {
		n := &s.Statistics[i]
		names[i] = declaredName{n.Name, n.Pos}
		for j := 1; j < len(n.Values); j++ {
			if n.Values[j-1].Name >= n.Values[j].Name {
				p.Add(names[i].place("statistics").Key("values", n.Pos), problem.ErrDuplicate, "%q",
					problem.Shorten(n.Values[j].Name))
				break
			}
		}
	}
	s.checkNames(p, "statistics", names, MaxStatistics, problem.ErrStatistics, (*Op).StatisticsName)
}
