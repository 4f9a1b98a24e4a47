package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/decimal"
	"github.com/millrace/millrace/fpga/operator/float16"
	"github.com/millrace/millrace/fpga/operator/int96time"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/targetencoding"
)

// checkConstants checks that an operator has either both of its constants or the name of statistics, and reports
// whether it has constants.
func checkConstants(p *problems, o *Op, a location, constants ...string) bool {
	named, ok := o.arg(statisticsParameter)
	for _, name := range constants {
		given, has := o.arg(name)
		switch {
		case ok && has:
			p.add(a.key(name, firstPos(given.Pos, a.pos)), ErrValue, "%s beside statistics, want one of them", name)
		case !ok && !has:
			p.add(a, ErrMissing, "%s, or statistics instead of constants", name)
		}
	}
	if ok && named.Value == Text("") {
		p.add(a.key(statisticsParameter, firstPos(named.Pos, a.pos)), ErrValue, "no name, want that of statistics")
	}
	return !ok
}

// statisticsOf returns what an operator takes from statistics: of the value that the chain has made so far. It returns
// nil after an error.
func (c *chain) statisticsOf(o *Op, a location) *catalogue.Statistics {
	if !c.requireNumbers(o, a) {
		return nil
	}
	if c.column.List {
		c.refuse(a, ErrColumnType, "%s of a list takes no statistics: those of lists are their lengths; give constants",
			o.Name)
		return nil
	}
	zero, one := 0.0, 1.0
	s := &ValueStatistics{Mean: &zero, Deviation: &one, Min: &zero, Max: &one, Median: &zero}
	value := c.valueName()
	if c.r.statistics != nil { // otherwise it is a trial, which asks only whether the operators take the column
		s = c.findStatistics(o, value, nil, s, a)
	}
	if s == nil {
		return nil
	}
	return &catalogue.Statistics{Mean: s.Mean, Deviation: s.Deviation, Min: s.Min, Max: s.Max, Median: s.Median,
		Value: value, Name: shorten(o.statisticsName())}
}

// findStatistics returns the statistics of a value by its name, or the stand-in if they are recorded or their pass is
// another one. It returns nil after an error.
func (c *chain) findStatistics(
	o *Op, value string, folding *targetencoding.Folding, standIn *ValueStatistics, a location,
) *ValueStatistics {
	name := o.statisticsName()
	if before := c.r.recorder.takenBefore(c, name); before != "" {
		c.refuse(a, ErrStatistics, "%s takes its numbers from %q, and so does %s before it: the values behind %s are "+
			"known only once those numbers are. Name other statistics here, and summarize twice: first %q, then the "+
			"others with --statistics %s=FILE", o.Name, shorten(name), before, before, shorten(name), shorten(name))
		return nil
	}
	if c.r.recorder.record(c, name, value, folding) {
		return standIn
	}
	from := c.r.statistics[name]
	switch {
	case from != nil && from.Values != nil:
	case c.r.recorder != nil: // what the recorded values need is missed when their pass is resolved
		return standIn
	default:
		c.refuse(a, ErrStatistics, "there is no summary for %q: make one with millrace dataset summarize --pipeline, and "+
			"name it with --statistics %s=FILE", shorten(name), shorten(name))
		return nil
	}
	s := from.find(value)
	switch {
	case s == nil && folding == nil && c.from.step == nil && c.isOwnValue():
		c.refuse(a, ErrStatistics, "%q has no statistics of %q, or none that are numbers; millrace dataset summarize makes "+
			"them", shorten(name), shorten(value))
		return nil
	case s == nil:
		c.refuse(a, ErrStatistics, "%q has no statistics of %s: millrace dataset summarize --pipeline makes those of values "+
			"behind other operators; statistics of a column are for an operator that comes first", shorten(name), value)
		return nil
	}
	return s
}

// valueName returns the name under which statistics hold the value that the chain has made so far: the name of the
// column where it is the column's value, and otherwise also the operators and the first digits of the SHA-256 of their
// canonical form.
func (c *chain) valueName() string {
	name := c.from.column.Name
	if c.from.column.Map.IsMap() {
		name += "[" + c.from.column.Map.keyName(c.from.key, c.from.text) + "]"
	}
	if c.from.step == nil && c.isOwnValue() {
		return name
	}
	var ops []string
	for _, op := range c.ops {
		if _, conversion := op.(convert.Op); !conversion {
			ops = append(ops, op.Unit().String())
		}
	}
	full := name
	name = shorten(name)
	if ops != nil {
		name += " behind " + shorten(strings.Join(ops, ", "))
	}
	sum := sha256.Sum256(append([]byte(full), chainForm(c.from, c.ops)...))
	return name + " (" + hex.EncodeToString(sum[:6]) + ")"
}

// isOwnValue reports whether the operators so far are those with which statistics read the column itself, or none; see
// statisticsChain.
func (c *chain) isOwnValue() bool {
	if len(c.ops) != 1 {
		return len(c.ops) == 0
	}
	switch op := c.ops[0].(type) {
	case float16.Op:
		return true
	case decimal.Op:
		return op.To == program.Float64
	case int96time.Op:
		return op.To == int96time.Seconds
	}
	return false
}

// chainForm returns the canonical form of a value behind operators.
func chainForm(from *operand, ops []program.Op) []byte {
	c := canonical{}
	c.str(`{`+c.source(&from.column, from.step)+`,`).chain(&from.column, ops)
	c.stepsAndTables()
	return c.b
}
