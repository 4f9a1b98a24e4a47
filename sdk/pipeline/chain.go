package pipeline

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/catalogue"
	convertop "github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/program"
)

// chain is a column on its way through its operators.
type chain struct {
	r       *resolver
	column  *ColumnInfo
	entry   *catalogue.Entry // that is being applied
	kind    program.Kind
	nulls   nullness
	ids     idRange // of Int64 values
	bounded bool    // an operator bounds the ids, not only their type
	ops     []program.Op
	failed  bool
	// denseList says that the elements of lists become dense columns or one number.
	denseList bool

	vocabulary *Vocabulary      // that ends the chain; nil: none
	encoding   *featureEncoding // that ends the chain; nil: none
	// from is the value that the chain begins with. An operator that takes whole values ends a step, and the
	// chain then begins with the step's result: see beginStep.
	from    *operand
	written []Op // the operators before the one that is being applied, as written
}

// idRange is a range of integers, both ends included.
type idRange struct{ lo, hi int64 }

// fitInt32 reports whether every integer of the range is an int32.
func (r idRange) fitInt32() bool { return r.lo >= math.MinInt32 && r.hi <= math.MaxInt32 }

// rangeOfColumn returns the range of a column's integers.
func rangeOfColumn(c *ColumnInfo) idRange {
	switch {
	case c.Kind != program.Int64 || c.Bits == 0 || c.Bits > 63:
		return idRange{math.MinInt64, math.MaxInt64}
	case c.Unsigned || c.Bits == 1: // one bit is a boolean, 0 or 1
		return idRange{0, 1<<c.Bits - 1}
	default:
		return idRange{-1 << (c.Bits - 1), 1<<(c.Bits-1) - 1}
	}
}

// refuse adds an error and ends the chain.
func (c *chain) refuse(a location, err error, format string, args ...any) {
	c.failed = true
	c.r.add(a, err, format, args...)
}

func (c *chain) appendOp(op program.Op) { c.ops = append(c.ops, op) }

// convert adds a conversion if the values are of another kind.
func (c *chain) convert(to program.Kind) {
	if c.kind != to {
		c.appendOp(convertop.Op{To: to})
		c.kind = to
	}
}

// requireText refuses values that are not text.
func (c *chain) requireText(o *Op, a location) bool {
	switch {
	case c.kind != program.Bytes:
		c.refuse(a, ErrColumnType, "%s takes text, and these are %v", o.Name, c.kind)
	case c.column.Logical != "":
		c.refuse(a, ErrColumnType, "%s takes text, and %s", o.Name, c.describeBytes())
	}
	return !c.failed
}

// requireNumbers refuses strings.
func (c *chain) requireNumbers(o *Op, a location) bool {
	if c.kind == program.Bytes {
		c.refuse(a, ErrColumnType, "%s takes numbers, and %s", o.Name, c.describeBytes())
		return false
	}
	return true
}

// requireIntegers refuses values that are not int64.
func (c *chain) requireIntegers(o *Op, a location) bool {
	if c.requireNumbers(o, a) && c.kind != program.Int64 {
		c.refuse(a, ErrColumnType, "%s takes ids (int64), and these are %v; bucketize makes ids of real numbers",
			o.Name, c.kind)
	}
	return !c.failed
}

// toReals converts the values to float32 for an operator of real numbers, and reports whether it takes them.
func (c *chain) toReals(o *Op, a location) bool {
	if c.column.List && !c.denseList {
		c.refuse(a, ErrColumnType, "%s of a list: no tensor holds lists of real numbers", o.Name)
		return false
	}
	if !c.requireNumbers(o, a) {
		return false
	}
	c.convert(program.Float32)
	return true
}

// wholeNumber returns a parameter for int64 values.
func (c *chain) wholeNumber(o *Op, n Number, name string, a location) int64 {
	if !n.Integer {
		c.refuse(a, ErrValue, "%s %s of %s must be whole: the values are int64", name, n, o.Name)
	}
	return n.Int
}

// realNumber returns a parameter for float32 values, rounded to float32, or for float64 values.
func (c *chain) realNumber(o *Op, n Number, name string, a location) float64 {
	x := n.Real()
	if c.kind == program.Float32 {
		x = float64(n.Float32())
	}
	if math.IsInf(x, 0) {
		c.refuse(a, ErrValue, "%s %s of %s does not fit %v", name, n, o.Name, c.kind)
	}
	return x
}

// value returns a parameter as given, or its default.
func (c *chain) value(o *Op, name string) Value {
	if a, ok := o.arg(name); ok {
		return a.Value
	}
	return c.entry.Param(name).Default
}

func (c *chain) number(o *Op, name string) Number { return c.value(o, name).(Number) }

func (c *chain) word(o *Op, name string) string { return string(c.value(o, name).(Text)) }

// end checks that the tensor can hold the chain's values, and converts them.
func (c *chain) end(to program.Dest, a location) {
	switch {
	case c.kind == program.Bytes:
		c.refuse(a, ErrColumnType, "%v takes numbers, and %s", to, c.describeBytes())
	case c.encoding != nil: // the host makes real numbers of ids
	case to != program.ToSparse:
		c.convert(program.Float32)
	case c.kind != program.Int64:
		c.refuse(a, ErrColumnType, "sparse values are ids (int64), and these are %v; bucketize makes ids of real "+
			"numbers", c.kind)
	}
}

// embeddings returns the size of the embedding table for the ids, or 0 if no operator bounds the ids.
func (c *chain) embeddings() int64 {
	if !c.bounded || c.ids.lo < 0 || c.ids.hi == math.MaxInt64 {
		return 0
	}
	return c.ids.hi + 1
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
