package statisticspass

import (
	"math"
	"strings"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/summary"
	"github.com/millrace/millrace/sdk/targetencoding"
)

// Column is a column whose statistics a pass makes, and where the pass's mini-batches hold it.
type Column struct {
	Name string // in a pipeline
	Type string // kind and annotation, for people
	Kind summary.Kind
	List bool
	// Unsigned says that the values are the bits of unsigned integers of 64 bits.
	Unsigned bool
	// Dense is the index of its dense feature, for summary.Reals that are float32; below 0: it has none.
	Dense int
	// Key is the index of its key: the values, for summary.Reals without a dense feature the bits of the values as
	// float64. For summary.Lengths, and for summary.Reals with a dense feature, the key has a bucket for each value, of
	// which only the number counts. Below 0: it has none, and no row is null.
	Key int
	// Folding divides the rows into folds, for a column whose labels are counted by keys; nil: they are not.
	Folding *targetencoding.Folding
}

// SkippedColumn is a column without statistics.
type SkippedColumn struct{ Name, Reason string }

// OfColumns returns the spec of the pass that makes the statistics of columns: its mini-batches hold their values and
// say which rows are null. Without patterns it takes every column that a pass can read, and returns the others with the
// reason. The error is of type [Errors].
func OfColumns(schema []columntypes.Column, patterns []string) (*pipeline.Spec, []Column, []SkippedColumn,
	error) {
	var p problem.List
	index := resolve.NewIndex(schema)
	var refs []resolve.Reference
	var skipped []SkippedColumn
	if len(patterns) == 0 {
		for i := range schema {
			if reason := whyNoStatistics(index, &schema[i], resolve.Reference{Column: i}); reason != "" {
				skipped = append(skipped, SkippedColumn{Name: schema[i].Name, Reason: reason})
				continue
			}
			refs = append(refs, resolve.Reference{Column: i})
		}
		if len(refs) == 0 {
			why := "it has none"
			if len(skipped) > 0 {
				why = skipped[0].Name + ": " + skipped[0].Reason
			}
			p.Add(problem.Place{Path: "columns"}, problem.ErrUnsupported,
				"the dataset has no column that a pass can summarise; %s", why)
		}
	}
	seen := map[string]bool{}
	for i, text := range patterns {
		a := problem.Place{Path: "columns"}.Index(i, pipeline.Pos{})
		found, wrong := index.Match(text, nil)
		if wrong != nil {
			p.AddFound(a, wrong)
			continue
		}
		for _, ref := range found {
			name, _ := ref.Name(schema)
			if reason := whyNoStatistics(index, &schema[ref.Column], ref); reason != "" {
				a.Column = name
				p.Add(a, problem.ErrUnsupported, "%s", reason)
			} else if !seen[name] {
				seen[name] = true
				refs = append(refs, ref)
			}
		}
	}
	if len(refs) > pipeline.MaxFeatures {
		p.Add(problem.Place{Path: "columns"}, problem.ErrValue, "%d columns, want at most %d", len(refs),
			pipeline.MaxFeatures)
	}
	if err := p.Err(); err != nil {
		return nil, nil, nil, err
	}
	spec, columns := statisticsSpec(schema, refs)
	return spec, columns, skipped, nil
}

// whyNoStatistics says why a column has no statistics, or returns "".
func whyNoStatistics(index *resolve.Index, c *columntypes.Column, ref resolve.Reference) string {
	switch {
	case c.Unsupported != nil:
		return strings.ReplaceAll(c.Unsupported.Error(), "\n", "; ")
	case c.Name == "" || len(c.Name) > summary.MaxName/2:
		return "it has no name, or a long one"
	case index.IsTwice(c.Name):
		return "the dataset has several columns of this name"
	case c.Map.IsMap() && !ref.IsMap:
		return "it is a map: name its features, as " + problem.Shorten(c.Name) + "[" + c.Map.ExampleKey() + "]"
	case strings.HasPrefix(c.Logical, "INTERVAL"):
		return "an INTERVAL has no order, and equal ones have different bytes"
	}
	return ""
}

// statisticsSpec makes the spec of columns that have statistics.
func statisticsSpec(schema []columntypes.Column, refs []resolve.Reference) (*pipeline.Spec, []Column) {
	spec := &pipeline.Spec{Name: "statistics"}
	columns := make([]Column, len(refs))
	var keys, buckets []int // the columns, in the order of the keys
	for i, ref := range refs {
		info := &schema[ref.Column]
		name, _ := ref.Name(schema)
		c := &columns[i]
		*c = Column{Name: name, Type: info.Describe(), List: info.List, Dense: -1, Key: -1}
		var ops []pipeline.Op
		c.Kind, ops = statisticsChain(info)
		c.Unsigned = c.Kind == summary.Integers && ops == nil && resolve.StaysUnsigned(info, nil)
		group := func(more ...pipeline.Op) pipeline.Group {
			return pipeline.Group{Columns: pipeline.Columns(name), Ops: append(ops[:len(ops):len(ops)], more...),
				DropScores: info.Map.Scores != ""}
		}
		marks := pipeline.Bucketize(pipeline.Borders{List: []pipeline.Number{pipeline.Int(0)}})
		switch {
		case c.Kind != summary.Reals:
			spec.Sparse, keys = append(spec.Sparse, group()), append(keys, i)
		case info.List:
			c.Kind = summary.Lengths
			spec.Generated, buckets = append(spec.Generated, group(kindsOfReals())), append(buckets, i)
		case info.Kind == program.Float64 || len(ops) > 0: // a decimal becomes a float64
			spec.Sparse, keys = append(spec.Sparse, group(floatBits())), append(keys, i)
		default:
			c.Dense = len(spec.Dense)
			dense := group()
			if info.Nullable || info.Map.IsMap() {
				dense = group(pipeline.FillNull(pipeline.Int(0)))
				spec.Generated, buckets = append(spec.Generated, group(marks)), append(buckets, i)
			}
			dense.DropScores, dense.KeepNaN = false, true
			spec.Dense = append(spec.Dense, dense)
		}
	}
	for at, i := range append(keys, buckets...) {
		columns[i].Key = at
	}
	return spec, columns
}

// floatBits returns the operator with which a tensor of ids holds float64 numbers, which no dense tensor does.
func floatBits() pipeline.Op { return pipeline.Cast("float64_bits") }

// kindsOfReals returns the operator that makes the class of each real number of a list: accumulator.NegativeInfinity,
// Finite, PositiveInfinity or NotANumber.
func kindsOfReals() pipeline.Op {
	return pipeline.Bucketize(pipeline.Borders{List: []pipeline.Number{pipeline.Real(math.Inf(-1)),
		pipeline.Real(math.MaxFloat32), pipeline.Real(math.Inf(1))}},
		pipeline.With("nan", pipeline.Text("last")))
}

// statisticsChain returns how a column's values are summarised, and the operators that make them.
func statisticsChain(c *columntypes.Column) (summary.Kind, []pipeline.Op) {
	decimal := strings.HasPrefix(c.Logical, "DECIMAL")
	varied := c.Class() != columntypes.NoClass
	switch c.Kind {
	case program.Int64:
		switch {
		case decimal:
			return summary.Reals, []pipeline.Op{pipeline.Decimal("float64")}
		case varied:
			return summary.Integers, []pipeline.Op{pipeline.ToSeconds()}
		}
		return summary.Integers, nil
	case program.Bytes:
		switch {
		case decimal:
			return summary.Reals, []pipeline.Op{pipeline.Decimal("float64")}
		case c.Logical == "INT96":
			return summary.Integers, []pipeline.Op{pipeline.ToSeconds()}
		case c.Logical == "FLOAT16":
			return summary.Reals, nil
		}
		return summary.Hashes, []pipeline.Op{pipeline.HashBytes("xxh3")}
	}
	if varied {
		return summary.Reals, []pipeline.Op{pipeline.Decimal("float64")}
	}
	return summary.Reals, nil
}

// MatchNames returns the indices of the names that patterns name, in the order of the patterns and each once; all
// without patterns. The error is of type [Errors].
func MatchNames(names, patterns []string) ([]int, error) {
	schema, all := make([]columntypes.Column, len(names)), make([]int, len(names))
	for i, name := range names {
		schema[i], all[i] = columntypes.Column{Name: name}, i
	}
	if len(patterns) == 0 {
		return all, nil
	}
	var p problem.List
	var matched []int
	index := resolve.NewIndex(schema)
	seen := make(map[int]bool)
	for i, text := range patterns {
		found, wrong := index.Match(text, nil)
		if wrong != nil {
			p.AddFound(problem.Place{Path: "columns"}.Index(i, pipeline.Pos{}), wrong)
		}
		for _, ref := range found {
			if !seen[ref.Column] {
				seen[ref.Column] = true
				matched = append(matched, ref.Column)
			}
		}
	}
	return matched, p.Err()
}
