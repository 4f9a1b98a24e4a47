package pipeline

import (
	"math"
	"strings"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/summary"
	"github.com/millrace/millrace/sdk/targetencoding"
)

// StatisticsColumn is a column whose statistics a pass makes, and where the pass's mini-batches hold it.
type StatisticsColumn struct {
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

// Statistics returns the spec of the pass that makes the statistics of columns: its mini-batches hold their values and
// say which rows are null. Without patterns it takes every column that a pass can read, and returns the others with the
// reason. The error is of type [Errors].
func Statistics(schema []ColumnInfo, patterns []string) (*Spec, []StatisticsColumn, []SkippedColumn, error) {
	var p problems
	r := &resolver{problems: &p, schema: schema, byName: make(map[string]int), twice: make(map[string]bool)}
	for i := range schema {
		if _, twice := r.byName[schema[i].Name]; twice {
			r.twice[schema[i].Name] = true
		}
		r.byName[schema[i].Name] = i
	}
	var refs []columnRef
	var skipped []SkippedColumn
	if len(patterns) == 0 {
		for i := range schema {
			if reason := r.whyNoStatistics(columnRef{column: i}); reason != "" {
				skipped = append(skipped, SkippedColumn{Name: schema[i].Name, Reason: reason})
				continue
			}
			refs = append(refs, columnRef{column: i})
		}
		if len(refs) == 0 {
			why := "it has none"
			if len(skipped) > 0 {
				why = skipped[0].Name + ": " + skipped[0].Reason
			}
			p.add(location{path: "columns"}, ErrUnsupported, "the dataset has no column that a pass can summarise; %s", why)
		}
	}
	seen := map[string]bool{}
	for i, text := range patterns {
		a := location{path: "columns"}.index(i, Pos{})
		found, wrong := matchPattern(text, schema, r.byName, func(string) bool { return true })
		if wrong != nil {
			p.addFound(a, wrong)
			continue
		}
		for _, ref := range found {
			name, _ := ref.name(schema)
			if reason := r.whyNoStatistics(ref); reason != "" {
				a.column = name
				p.add(a, ErrUnsupported, "%s", reason)
			} else if !seen[name] {
				seen[name] = true
				refs = append(refs, ref)
			}
		}
	}
	if len(refs) > MaxFeatures {
		p.add(location{path: "columns"}, ErrValue, "%d columns, want at most %d", len(refs), MaxFeatures)
	}
	if err := p.err(); err != nil {
		return nil, nil, nil, err
	}
	spec, columns := statisticsSpec(schema, refs)
	return spec, columns, skipped, nil
}

// whyNoStatistics says why a column has no statistics, or returns "".
func (r *resolver) whyNoStatistics(ref columnRef) string {
	c := &r.schema[ref.column]
	switch {
	case c.Unsupported != nil:
		return strings.ReplaceAll(c.Unsupported.Error(), "\n", "; ")
	case c.Name == "" || len(c.Name) > summary.MaxName/2:
		return "it has no name, or a long one"
	case r.twice[c.Name]:
		return "the dataset has several columns of this name"
	case c.Map.IsMap() && !ref.isMap:
		return "it is a map: name its features, as " + shorten(c.Name) + "[" + c.Map.exampleKey() + "]"
	case strings.HasPrefix(c.Logical, "INTERVAL"):
		return "an INTERVAL has no order, and equal ones have different bytes"
	}
	return ""
}

// statisticsSpec makes the spec of columns that have statistics.
func statisticsSpec(schema []ColumnInfo, refs []columnRef) (*Spec, []StatisticsColumn) {
	spec := &Spec{Name: "statistics"}
	columns := make([]StatisticsColumn, len(refs))
	var keys, buckets []int // the columns, in the order of the keys
	for i, ref := range refs {
		info := &schema[ref.column]
		name, _ := ref.name(schema)
		c := &columns[i]
		*c = StatisticsColumn{Name: name, Type: describeType(info), List: info.List, Dense: -1, Key: -1}
		var ops []Op
		c.Kind, ops = statisticsChain(info)
		c.Unsigned = c.Kind == summary.Integers && ops == nil && staysUnsigned(info, nil)
		group := func(more ...Op) Group {
			return Group{Columns: Columns(name), Ops: append(ops[:len(ops):len(ops)], more...),
				DropScores: info.Map.Scores != ""}
		}
		marks := Bucketize(Borders{List: []Number{Int(0)}})
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
				dense = group(FillNull(Int(0)))
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
func floatBits() Op { return Cast("float64_bits") }

// kindsOfReals returns the operator that makes the class of each real number of a list: accumulator.NegativeInfinity,
// Finite, PositiveInfinity or NotANumber.
func kindsOfReals() Op {
	return Bucketize(Borders{List: []Number{Real(math.Inf(-1)), Real(math.MaxFloat32), Real(math.Inf(1))}},
		With("nan", Text("last")))
}

// statisticsChain returns how a column's values are summarised, and the operators that make them.
func statisticsChain(c *ColumnInfo) (summary.Kind, []Op) {
	decimal := strings.HasPrefix(c.Logical, "DECIMAL")
	list := c.variants()
	switch c.Kind {
	case program.Int64:
		switch {
		case decimal:
			return summary.Reals, []Op{Decimal("float64")}
		case list != nil:
			return summary.Integers, []Op{ToSeconds()}
		}
		return summary.Integers, nil
	case program.Bytes:
		switch {
		case decimal:
			return summary.Reals, []Op{Decimal("float64")}
		case c.Logical == "INT96":
			return summary.Integers, []Op{ToSeconds()}
		case c.Logical == "FLOAT16":
			return summary.Reals, nil
		}
		return summary.Hashes, []Op{HashBytes("xxh3")}
	}
	if list != nil {
		return summary.Reals, []Op{Decimal("float64")}
	}
	return summary.Reals, nil
}

// describeType names the kind of a column's values, and what they stand for.
func describeType(c *ColumnInfo) string {
	name := c.Kind.String()
	if c.Logical != "" {
		name += " " + c.Logical
	}
	if c.List {
		return "list of " + name
	}
	return name
}

// MatchNames returns the indices of the names that patterns name, in the order of the patterns and each once; all
// without patterns. The error is of type [Errors].
func MatchNames(names, patterns []string) ([]int, error) {
	schema, byName := make([]ColumnInfo, len(names)), make(map[string]int, len(names))
	all := make([]int, len(names))
	for i, name := range names {
		schema[i], byName[name], all[i] = ColumnInfo{Name: name}, i, i
	}
	if len(patterns) == 0 {
		return all, nil
	}
	var p problems
	var matched []int
	seen := make(map[int]bool)
	for i, text := range patterns {
		found, wrong := matchPattern(text, schema, byName, func(string) bool { return true })
		if wrong != nil {
			p.addFound(location{path: "columns"}.index(i, Pos{}), wrong)
		}
		for _, ref := range found {
			if !seen[ref.column] {
				seen[ref.column] = true
				matched = append(matched, ref.column)
			}
		}
	}
	return matched, p.err()
}
