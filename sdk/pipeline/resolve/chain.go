package resolve

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/catalogue"
	convertop "github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// chain is a column on its way through its operators.
type chain struct {
	r            *resolver
	column       *columntypes.Column
	*pipeline.Op // The operator that is being applied, at its place.
	at           problem.Place
	kind         program.Kind
	nulls        nullness
	ids          catalogue.Range // Values of another kind than int64 have no range.
	bounded      bool            // an operator bounds the ids, not only their type
	ops          []program.Op
	failed       bool
	// denseList says that the elements of lists become dense columns or one number.
	denseList bool

	vocabulary *pipeline.Vocabulary // nil: no vocabulary ends the chain.
	encoding   *featureEncoding     // nil: no target encoding ends the chain.
	// from is the value that the chain begins with. An operator that takes whole values ends a step, and the
	// chain then begins with the step's result: see beginStep.
	from    *Operand
	written []pipeline.Op // the operators before the one that is being applied, as written
}

// rangeOfColumn returns the range of a column's integers.
func rangeOfColumn(c *columntypes.Column) catalogue.Range {
	switch {
	case c.Kind != program.Int64 || c.Bits == 0 || c.Bits > 63:
		return catalogue.AllIntegers
	case c.Unsigned || c.Bits == 1: // one bit is a boolean, 0 or 1
		return catalogue.Range{Low: 0, High: 1<<c.Bits - 1}
	default:
		return catalogue.Range{Low: -1 << (c.Bits - 1), High: 1<<(c.Bits-1) - 1}
	}
}

// Refuse implements [catalogue.Chain].
func (c *chain) Refuse(kind error, format string, args ...any) { c.refuse(c.at, kind, format, args...) }

// refuse adds an error and ends the chain.
func (c *chain) refuse(a problem.Place, err error, format string, args ...any) {
	c.failed = true
	c.r.Add(a, err, format, args...)
}

func (c *chain) appendOp(op program.Op) { c.ops = append(c.ops, op) }

// Convert adds a conversion if the values are of another kind.
func (c *chain) Convert(to program.Kind) {
	if c.kind != to {
		c.appendOp(convertop.Op{To: to})
		c.kind = to
	}
}

// RequireText refuses values that are not text.
func (c *chain) RequireText() bool {
	switch {
	case c.kind != program.Bytes:
		c.Refuse(problem.ErrColumnType, "%s takes text, and these are %v", c.Name, c.kind)
	case c.column.Logical != "":
		c.Refuse(problem.ErrColumnType, "%s takes text, and %s", c.Name, c.DescribeBytes())
	}
	return !c.failed
}

// RequireNumbers refuses strings.
func (c *chain) RequireNumbers() bool {
	if c.kind == program.Bytes {
		c.Refuse(problem.ErrColumnType, "%s takes numbers, and %s", c.Name, c.DescribeBytes())
		return false
	}
	return true
}

// RequireIntegers refuses values that are not int64.
func (c *chain) RequireIntegers() bool {
	if c.RequireNumbers() && c.kind != program.Int64 {
		c.Refuse(problem.ErrColumnType, "%s takes ids (int64), and these are %v; bucketize makes ids of real numbers",
			c.Name, c.kind)
	}
	return !c.failed
}

// RequireReals converts the values to float32 for an operator of real numbers, and reports whether it takes them.
func (c *chain) RequireReals() bool {
	if c.column.List && !c.denseList {
		c.Refuse(problem.ErrColumnType, "%s of a list: no tensor holds lists of real numbers", c.Name)
		return false
	}
	if !c.RequireNumbers() {
		return false
	}
	c.Convert(program.Float32)
	return true
}

// WholeNumber returns a parameter for int64 values.
func (c *chain) WholeNumber(name string, n pipeline.Number) int64 {
	if !n.Integer {
		c.Refuse(problem.ErrValue, "%s %s of %s must be whole: the values are int64", name, n, c.Name)
	}
	return n.Int
}

// RealNumber returns a parameter for float32 values, rounded to float32, or for float64 values.
func (c *chain) RealNumber(name string, n pipeline.Number) float64 {
	x := n.Real()
	if c.kind == program.Float32 {
		x = float64(n.Float32())
	}
	if math.IsInf(x, 0) {
		c.Refuse(problem.ErrValue, "%s %s of %s does not fit %v", name, n, c.Name, c.kind)
	}
	return x
}

// Value returns a parameter as given, or its default.
func (c *chain) Value(name string) pipeline.Value {
	if v, ok := c.Given(name); ok {
		return v
	}
	return pipeline.EntryOf(c.Name).Param(name).Default
}

func (c *chain) Number(name string) pipeline.Number {
	return c.Value(name).(pipeline.Number)
}

func (c *chain) Word(name string) string {
	return string(c.Value(name).(pipeline.Text))
}

// end checks that the tensor can hold the chain's values, and converts them.
func (c *chain) end(to program.Dest, a problem.Place) {
	switch {
	case c.kind == program.Bytes:
		c.refuse(a, problem.ErrColumnType, "%v takes numbers, and %s", to, c.DescribeBytes())
	case c.encoding != nil: // the host makes real numbers of ids
	case to != program.ToSparse:
		c.Convert(program.Float32)
	case c.kind != program.Int64:
		c.refuse(a, problem.ErrColumnType, "sparse values are ids (int64), and these are %v; bucketize makes ids of real "+
			"numbers", c.kind)
	}
}

// embeddings returns the size of the embedding table for the ids, or 0 if no operator bounds the ids.
func (c *chain) embeddings() int64 {
	if !c.bounded || c.ids.Low < 0 || c.ids.High == math.MaxInt64 {
		return 0
	}
	return c.ids.High + 1
}

// shared returns what a key was made into before, or makes it.
func (r *resolver) shared(key any, build func() (program.Op, error)) (program.Op, error) {
	if made := r.made[key]; made != nil {
		return made, nil
	}
	op, err := build()
	if err != nil {
		return nil, err
	}
	if r.made == nil {
		r.made = map[any]program.Op{}
	}
	r.made[key] = op
	return op, nil
}

// countNumbers counts the numbers of a table, which many features may use, once.
func (r *resolver) countNumbers(key any, n int) error {
	if r.counted[key] {
		return nil
	}
	if r.counted == nil {
		r.counted = map[any]bool{}
	}
	r.counted[key] = true
	if r.borders += n; r.borders > maxTables {
		return fmt.Errorf("the pipeline has more than %d borders in all", maxTables)
	}
	return nil
}
