package resolve

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
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/targetencoding"
)

// Statistics returns what an operator takes from statistics: of the value that the chain has made so far. It returns
// nil after an error.
func (c *chain) Statistics() *catalogue.Statistics {
	if !c.RequireNumbers() {
		return nil
	}
	if c.column.List {
		c.Refuse(problem.ErrColumnType,
			"%s of a list takes no statistics: those of lists are their lengths; give constants",
			c.Name)
		return nil
	}
	zero, one := 0.0, 1.0
	s := &pipeline.ValueStatistics{Mean: &zero, Deviation: &one, Min: &zero, Max: &one, Median: &zero}
	value := c.valueName()
	if c.r.statistics != nil { // otherwise it is a trial, which asks only whether the operators take the column
		s = c.findStatistics(value, nil, s)
	}
	if s == nil {
		return nil
	}
	return &catalogue.Statistics{Mean: s.Mean, Deviation: s.Deviation, Min: s.Min, Max: s.Max, Median: s.Median,
		Value: value, Name: problem.Shorten(c.StatisticsName())}
}

// findStatistics returns the statistics of a value by its name, or the stand-in if they are recorded or their pass is
// another one. It returns nil after an error.
func (c *chain) findStatistics(
	value string, folding *targetencoding.Folding, standIn *pipeline.ValueStatistics,
) *pipeline.ValueStatistics {
	name := c.StatisticsName()
	if before := c.r.recorder.takenBefore(c, name); before != "" {
		c.Refuse(problem.ErrStatistics,
			"%s takes its numbers from %q, and so does %s before it: the values behind %s are "+
				"known only once those numbers are. Name other statistics here, and summarize twice: first %q, then the "+
				"others with --statistics %s=FILE", c.Name, problem.Shorten(name), before, before, problem.Shorten(name),
			problem.Shorten(name))
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
		c.Refuse(problem.ErrStatistics,
			"the summary %q is not given: make one with millrace dataset summarize --pipeline, and "+
				"name it with --statistics %s=FILE", problem.Shorten(name), problem.Shorten(name))
		return nil
	}
	s := from.Find(value)
	switch {
	case s == nil && folding == nil && c.from.Step == nil && c.isOwnValue():
		c.Refuse(problem.ErrStatistics,
			"%q has no statistics of %q, or none that are numbers; millrace dataset summarize makes "+
				"them", problem.Shorten(name), problem.Shorten(value))
		return nil
	case s == nil:
		c.Refuse(problem.ErrStatistics,
			"%q has no statistics of %s: millrace dataset summarize --pipeline makes those of values "+
				"behind other operators; statistics of a column are for an operator that comes first", problem.Shorten(name), value)
		return nil
	}
	return s
}

// valueName returns the name under which statistics hold the value that the chain has made so far: the name of the
// column where it is the column's value, and otherwise also the operators and the first digits of the SHA-256 of their
// canonical form.
func (c *chain) valueName() string {
	name := c.from.Column.Name
	if c.from.Column.Map.IsMap() {
		name += "[" + c.from.Column.Map.KeyName(c.from.Key, c.from.Text) + "]"
	}
	if c.from.Step == nil && c.isOwnValue() {
		return name
	}
	var ops []string
	for _, op := range c.ops {
		if _, conversion := op.(convert.Op); !conversion {
			ops = append(ops, op.Unit().String())
		}
	}
	full := name
	name = problem.Shorten(name)
	if ops != nil {
		name += " behind " + problem.Shorten(strings.Join(ops, ", "))
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
func chainForm(from *Operand, ops []program.Op) []byte {
	c := canonical{}
	c.str(`{`+c.source(&from.Column, from.Step)+`,`).chain(&from.Column, ops)
	c.stepsAndTables()
	return c.b
}
