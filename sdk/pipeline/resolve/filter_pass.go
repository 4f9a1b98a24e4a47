package resolve

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/selection"
)

// FilterPass is a filter that was applied to the schema of a data set.
type FilterPass struct {
	// Spec is the pass over the data set that makes the values which Condition tests: each of its keys is a column or
	// value that the filter names. It is nil if the filter names none.
	Spec      *pipeline.Spec
	Condition *selection.Condition

	keys []Feature // The keys of Spec.
}

// filterColumn is a column or value that a filter names.
type filterColumn struct {
	name      string
	kind      program.Kind
	unsigned  bool // the values are uint64: those from 2^63 on are negative as int64
	key       int
	constants []float64 // What real numbers are compared with.
	chain     *chain    // describes the values
}

// filterResolver applies a filter to a schema.
type filterResolver struct {
	*resolver
	columns map[string]*filterColumn
	order   []*filterColumn // by key
	refused bool            // a value that the filter names has an error, which may have been added where it is declared
}

// filterPass applies the spec's filter to the schema. It returns nil without a filter and after an error.
func (r *resolver) filterPass(s *pipeline.Spec) *FilterPass {
	if s.Filter == nil {
		return nil
	}
	f := &filterResolver{resolver: r, columns: map[string]*filterColumn{}}
	a := problem.Place{Path: "filter", Pos: s.Filter.Pos}
	before := len(r.Errors)
	if f.collect(s.Filter, a); len(r.Errors) > before || f.refused {
		return nil
	}
	pass := &FilterPass{}
	condition := f.compile(s.Filter, a)
	if pass.Condition = &condition; len(r.Errors) > before || len(f.order) == 0 {
		return pass
	}
	pass.Spec = &pipeline.Spec{Name: s.Name, Batch: pipeline.DefaultBatch}
	for i, c := range f.order {
		pass.Spec.Sparse = append(pass.Spec.Sparse, pipeline.Group{Columns: pipeline.Columns(c.name), As: fmt.Sprintf("k%d",
			i),
			Ops: c.operators()})
	}
	pass.Spec.TakeNamed(s)
	resolved, err := Pipeline(pass.Spec, r.schema)
	if err != nil {
		r.Add(a, problem.ErrValue, "%v", err)
		return nil
	}
	pass.keys = resolved.Keys
	return pass
}

// operators returns the operators that make ids of the column's values: real numbers become the numbers of buckets,
// which lie between the constants that they are compared with, and strings become hashes.
func (c *filterColumn) operators() []pipeline.Op {
	switch c.kind {
	case program.Bytes:
		return []pipeline.Op{pipeline.HashBytes("xxh3")}
	case program.Float32, program.Float64:
		b := pipeline.Borders{}
		for _, x := range c.borders() {
			b.List = append(b.List, pipeline.Real(x))
		}
		return []pipeline.Op{pipeline.Bucketize(b, pipeline.With("side", pipeline.Text("right")), pipeline.With("nan",
			pipeline.Text("first")), pipeline.With("compare", pipeline.Text("float64")))}
	}
	return nil
}

// borders returns the borders of the buckets of real numbers. Bucket 0 holds NaN, and each constant has the bucket
// of its place, counted from 2, since its bucket ends before the next float64.
func (c *filterColumn) borders() []float64 {
	borders := []float64{math.Inf(-1)}
	for _, x := range c.constants {
		if borders[len(borders)-1] < x {
			borders = append(borders, x)
		}
		borders = append(borders, math.Nextafter(x, math.Inf(1)))
	}
	return borders
}

// bucketOf returns the bucket that holds a constant and no other number.
func (c *filterColumn) bucketOf(x float64) int64 {
	i, _ := slices.BinarySearch(c.borders(), x)
	return int64(i) + 1
}

// collect resolves the columns that a filter names, and gathers the constants that real numbers are compared with.
func (f *filterResolver) collect(filter *pipeline.Filter, a problem.Place) {
	if filter.Path != "" {
		a = problem.Place{Path: filter.Path}
	}
	for i := range filter.All {
		f.collect(&filter.All[i], a.Key("all", a.Pos).Index(i, filter.All[i].Pos))
	}
	for i := range filter.Any {
		f.collect(&filter.Any[i], a.Key("any", a.Pos).Index(i, filter.Any[i].Pos))
	}
	switch {
	case filter.Not != nil:
		f.collect(filter.Not, a.Key("not", filter.Not.Pos))
	case filter.Sampling != nil:
		if filter.Sampling.Key == pipeline.SamplingRow {
			return
		}
		here := a.Key("sampling", filter.Sampling.Pos)
		if c := f.column(filter.Sampling.Key, here); c != nil && c.kind != program.Int64 && c.kind != program.Bytes {
			f.Add(here, problem.ErrColumnType, "sampling takes ids or strings as its key, and %q has %v",
				problem.Shorten(c.name), c.kind)
		}
	case len(filter.Comparisons) > 0:
		c := f.column(filter.Column, a)
		for i := range filter.Comparisons {
			if c == nil || f.stopped() {
				return
			}
			f.collectComparison(c, &filter.Comparisons[i], a)
		}
	}
}

// collectComparison checks that values of a column compare with constants, and gathers the constants.
func (f *filterResolver) collectComparison(c *filterColumn, comparison *pipeline.Comparison, a problem.Place) {
	if len(comparison.Values) == 0 {
		return
	}
	here := a.Key(comparison.Key(), comparison.Pos)
	switch annotation := c.chain.Annotation(); {
	case c.kind == program.Bytes:
		f.Add(here, problem.ErrColumnType,
			"a filter compares numbers, and %s; such a value can be null, or be the key of a sampling",
			c.chain.DescribeBytes())
		return
	case annotation != "":
		f.Add(here, problem.ErrColumnType,
			"the values of %q are %s: compare a value (values:) that to_seconds, to_days or decimal "+
				"makes of them", problem.Shorten(c.name), annotation)
		return
	}
	for _, x := range comparison.Values {
		switch {
		case c.kind == program.Int64:
			if !x.Integer {
				f.Add(here, problem.ErrValue, "%s, want a whole number: the values of %q are int64", x, problem.Shorten(c.name))
				return
			}
		case math.IsInf(c.constant(x), 0):
			f.Add(here, problem.ErrValue, "%s does not fit %v", x, c.kind)
			return
		default:
			if i, found := slices.BinarySearch(c.constants, c.constant(x)); !found {
				c.constants = slices.Insert(c.constants, i, c.constant(x))
			}
		}
	}
	if len(c.borders()) > program.MaxBorders {
		f.Add(here, problem.ErrValue, "%q is compared with more than %d numbers", problem.Shorten(c.name),
			program.MaxBorders/2)
	}
}

// constant returns a number in the kind of the column's real values. There is no negative zero, which compares as zero.
func (c *filterColumn) constant(n pipeline.Number) float64 {
	x := n.Real()
	if c.kind == program.Float32 {
		x = float64(n.Float32())
	}
	return x + 0
}

// column resolves a column or value that the filter names. It returns nil after an error.
func (f *filterResolver) column(name string, a problem.Place) *filterColumn {
	if c, ok := f.columns[name]; ok {
		return c
	}
	f.columns[name] = nil
	o := f.operandOf(pipeline.Pattern{Text: name, Pos: a.Pos}, false, a, nil)
	if o == nil {
		f.refused = true
		return nil
	}
	if o.Column.List {
		f.Add(a, problem.ErrColumnType, "%q has lists, and a filter takes one value a row", problem.Shorten(name))
		return nil
	}
	c := &filterColumn{name: name, kind: o.kind, key: len(f.order)}
	c.unsigned = o.Step == nil && StaysUnsigned(&o.Column, o.Ops)
	c.chain = &chain{r: f.resolver, column: &o.Column, kind: o.kind, ops: o.Ops, from: o}
	if o.kind == program.Bytes && !columntypes.IsCategory(o.Column.Logical) {
		f.Add(a, problem.ErrColumnType, "%s; name a value (values:) that is made so", c.chain.DescribeBytes())
		return nil
	}
	f.columns[name], f.order = c, append(f.order, c)
	return c
}

// compile returns the condition of a filter whose columns were collected.
func (f *filterResolver) compile(filter *pipeline.Filter, a problem.Place) selection.Condition {
	list := func(filters []pipeline.Filter) (conditions []selection.Condition) {
		for i := range filters {
			conditions = append(conditions, f.compile(&filters[i], a))
		}
		return conditions
	}
	switch {
	case filter.All != nil:
		return selection.Condition{All: list(filter.All)}
	case filter.Any != nil:
		return selection.Condition{Any: list(filter.Any)}
	case filter.Not != nil:
		not := f.compile(filter.Not, a)
		return selection.Condition{Not: &not}
	case filter.Sampling != nil:
		s := &selection.Sampling{Key: -1, Rate: filter.Sampling.Rate, Salt: filter.Sampling.Salt}
		if filter.Sampling.Key != pipeline.SamplingRow {
			s.Key = f.columns[filter.Sampling.Key].key
		}
		return selection.Condition{Sampling: s}
	}
	var all []selection.Condition
	c := f.columns[filter.Column]
	for i := range filter.Comparisons {
		all = append(all, c.condition(&filter.Comparisons[i]))
	}
	if len(all) == 1 {
		return all[0]
	}
	return selection.Condition{All: all}
}

// condition returns the condition of one comparison.
func (c *filterColumn) condition(comparison *pipeline.Comparison) selection.Condition {
	switch comparison.Operator {
	case "null":
		return selection.Condition{Key: c.key, Null: selection.IsNull}
	case "not_null":
		return selection.Condition{Key: c.key, Null: selection.IsNotNull}
	}
	least := int64(math.MinInt64)
	switch {
	case c.kind != program.Int64:
		least = 1 // bucket 0 is NaN, which no number is less than
	case c.unsigned:
		least = 0
	}
	var ranges, large []selection.Range
	if c.unsigned { // values from 2^63 on, which are negative as int64
		large = []selection.Range{{Least: math.MinInt64, Greatest: -1}}
	}
	for _, n := range comparison.Values {
		x := n.Int
		if c.kind != program.Int64 {
			x = c.bucketOf(c.constant(n))
		}
		below, above := selection.Range{Least: least, Greatest: x - 1}, selection.Range{Least: x + 1, Greatest: math.MaxInt64}
		if x == math.MinInt64 {
			below = selection.Range{Least: 1} // empty
		}
		if x == math.MaxInt64 {
			above = selection.Range{Least: 1}
		}
		equal := selection.Range{Least: x, Greatest: x}
		if c.unsigned && x < 0 {
			below, equal = selection.Range{Least: 1}, selection.Range{Least: 1}
			above = selection.Range{Greatest: math.MaxInt64}
		}
		switch comparison.Operator {
		case "eq", "in":
			ranges = append(ranges, equal)
		case "ne":
			if c.kind != program.Int64 {
				below.Least = 0 // NaN is another number than every one
			}
			ranges = append(ranges, below, above)
			ranges = append(ranges, large...)
		case "lt":
			ranges = append(ranges, below)
		case "le":
			ranges = append(ranges, below, equal)
		case "gt":
			ranges = append(append(ranges, above), large...)
		case "ge":
			ranges = append(append(ranges, above, equal), large...)
		}
	}
	return selection.Condition{Key: c.key, Ranges: selection.Union(ranges)}
}

// filter writes a filter: its condition, and the keys that the condition tests.
func (c *canonical) filter(f *FilterPass) *canonical {
	c.str(`{"condition":`).condition(f.Condition).features("keys", f.keys)
	return c.str(`}`)
}

// condition writes a condition.
func (c *canonical) condition(f *selection.Condition) *canonical {
	list := func(name string, conditions []selection.Condition) *canonical {
		c.str(`{"` + name + `":[`)
		for i := range conditions {
			c.comma(i).condition(&conditions[i])
		}
		return c.str(`]}`)
	}
	switch {
	case len(f.All) > 0:
		return list("all", f.All)
	case len(f.Any) > 0:
		return list("any", f.Any)
	case f.Not != nil:
		return c.str(`{"not":`).condition(f.Not).str(`}`)
	case f.Sampling != nil:
		c.str(`{"sampling":{"key":`)
		if f.Sampling.Key < 0 {
			c.str(`"row"`)
		} else {
			c.int(int64(f.Sampling.Key))
		}
		c.str(`,"rate":`).float64(f.Sampling.Rate + 0)
		return c.str(`,"salt":`).int(f.Sampling.Salt).str(`}}`)
	case f.Null != selection.NoNullTest:
		return c.str(`{"key":`).int(int64(f.Key)).str(`,"null":`).bool(f.Null == selection.IsNull).str(`}`)
	}
	c.str(`{"key":`).int(int64(f.Key)).str(`,"in":[`)
	for i, r := range f.Ranges {
		c.comma(i).str(`[`).int(r.Least).str(`,`).int(r.Greatest).str(`]`)
	}
	return c.str(`]}`)
}

// FilterDigest returns the digest of the filter's canonical form, with the treatment of malformed rows, which decides
// what is null. It is zero without a filter.
func (r *Resolved) FilterDigest() dataset.Digest {
	if r.Filter == nil {
		return dataset.Digest{}
	}
	c := canonical{}
	c.str(`{"filter":`).int(CanonicalVersion)
	if r.Source == program.CriteoTSV {
		c.str(`,"malformed":"` + r.Malformed.String() + `"`)
	}
	c.str(`,"rows":`).filter(r.Filter).stepsAndTables()
	return sha256.Sum256(c.b)
}

// CheckDroppedRows refuses a filter over rows that are dropped for being malformed.
func (r *Resolved) CheckDroppedRows() error {
	var p problem.List
	if r.Filter != nil && r.Malformed == program.MalformedDrop {
		p.Add(problem.Place{Path: "filter"}, problem.ErrValue,
			"malformed rows are dropped while mini-batches are made, and a selection "+
				"numbers the rows before; treat them as null or as errors")
	}
	return p.Err()
}

// CheckSelection checks that the selection of a pipeline with a filter is there.
func (r *Resolved) CheckSelection() error {
	var p problem.List
	a := problem.Place{Path: "filter"}
	if err := r.CheckDroppedRows(); err != nil {
		return err
	}
	switch {
	case r.Filter == nil:
		return nil
	case r.Selection == nil:
		p.Add(a, problem.ErrSelection,
			"the rows that pass are not known here: preprocess, train, millrace.open and the control "+
				"plane make a selection first")
	case r.Selection.Filter != r.FilterDigest():
		p.Add(a, problem.ErrSelection, "it was made with another filter: make it again")
	}
	return p.Err()
}
