package pipeline

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/selection"
)

// DefaultBatch is the number of rows of a mini-batch if a spec gives none: PreSto's, Table I.
const DefaultBatch = 8192

// MaxBatch bounds Spec.Batch.
const MaxBatch = 1 << 24

// Spec is a feature pipeline as a person writes it. It is data: build it in Go, or read it with [Parse] or [Named].
type Spec struct {
	Name  string      // for people; not part of a job's identity
	Batch int         // rows of a mini-batch, at most MaxBatch; 0: DefaultBatch
	IDs   program.IDs // type of sparse values; the zero value is int64
	// FitIDs lets Resolve choose the type of sparse values: int32 if every id provably fits, else int64. IDs must then be
	// the zero value. In a document it is "ids: auto".
	FitIDs    bool
	DenseType program.DenseType // type of dense features; the zero value is float32

	Label     *Label // nil: mini-batches have no label
	Values    []NamedValue
	Dense     []Group
	Sparse    []Group
	Generated []Group // sparse features made from other columns; their keys come after those of Sparse
	// Vocabularies are those that operators name, in the order of the document.
	Vocabularies []Vocabulary
	// Statistics are those that operators name, in the order of the document.
	Statistics []NamedStatistics
	// Filter chooses the rows of the mini-batches; nil: all rows.
	Filter *Filter
	// Selection is the selection that was made for the filter; nil: none is at hand. It is not part of a document. See
	// [Resolved.FilterPass].
	Selection *selection.Selection
	// Modules are the WebAssembly modules that operators name. They are not part of a document. See [Spec.BindModule].
	Modules []Module
}

// Label is the column that the model is to predict.
type Label struct {
	Column string
	Ops    []Op
	Pos    Pos
}

// NamedValue is an intermediate value, which groups and other values name as they name columns.
type NamedValue struct {
	As     string
	From   Pattern   // one column or value; not given if there are Inputs
	Inputs []Pattern // columns and values, one each, that the first operator takes together
	Ops    []Op
	// AllowAbsent makes a column of From or Inputs that a partition lacks a null column there.
	AllowAbsent bool
	Pos         Pos
}

// Group is columns that share a chain of operators, of which each becomes one feature; or the inputs of one feature.
type Group struct {
	Columns []Pattern // in order; see Pattern. A pattern may be the name of a value
	Inputs  []Pattern // instead of Columns: columns and values, one each, that the first operator takes together
	Ops     []Op      // from the column to the tensor
	// As names the features: {column} is the column's name, {n} the number at its end or the key in a map, {i} its
	// index in the group, from 0. Empty: the column's name.
	As string
	// DropScores leaves out the scores of scored lists, which otherwise become the weights of their ids.
	DropScores bool
	// Deduplicate lets mini-batches hold each different row of the group's keys, taken together, once. Of keys only.
	Deduplicate bool
	// AllowAbsent makes a column that a partition lacks a null column there. Without it such a column is an error.
	AllowAbsent bool
	// KeepNaN lets a NaN end in a dense feature. Without it such a NaN is an error.
	KeepNaN bool
	Pos     Pos
}

// Pattern names columns: "int_0", "int_0..int_12" (in numeric order, both ends included) or "int_*" (in the schema's
// order); or features of a column that is a map: "ids[101]", "ids[101..120, 205]". If a column's name is the whole
// text, the pattern names that column.
type Pattern struct {
	Text string
	Pos  Pos
}

// Columns makes patterns of texts.
func Columns(texts ...string) []Pattern {
	patterns := make([]Pattern, len(texts))
	for i, t := range texts {
		patterns[i] = Pattern{Text: t}
	}
	return patterns
}

// Op is an operator with its parameters, as written. [Catalogue] lists the operators.
type Op struct {
	Name string
	Args []Arg
	Pos  Pos
}

// Arg is one parameter of an operator.
type Arg struct {
	Name  string
	Value Value
	Pos   Pos
}

// FillNull returns the operator that replaces nulls by a value.
func FillNull(value Number) Op { return op("fill_null", arg("value", value)) }

// FillNaN returns the operator that replaces NaN by a value.
func FillNaN(value Number) Op { return op("fill_nan", arg("value", value)) }

// Clamp returns the operator that bounds values from both sides.
func Clamp(lo, hi Number) Op { return op("clamp", arg("min", lo), arg("max", hi)) }

// ClampMin returns the operator that bounds values from below. With 0 it is Piper's Neg2Zero.
func ClampMin(lo Number) Op { return op("clamp", arg("min", lo)) }

// ClampMax returns the operator that bounds values from above.
func ClampMax(hi Number) Op { return op("clamp", arg("max", hi)) }

// Log returns the operator ln(x + add).
func Log(add Number) Op { return op("log", arg("add", add)) }

// Bucketize returns the operator that turns values into the numbers of their buckets. Options are given as Arg{Name:
// "side", Value: Text("right")}.
func Bucketize(b Borders, options ...Arg) Op {
	return op("bucketize", append([]Arg{arg("borders", b)}, options...)...)
}

// SigridHash returns the operator that hashes ids into [0, limit).
func SigridHash(salt, limit int64) Op {
	return op("sigrid_hash", arg("salt", Int(salt)), arg("max", Int(limit)))
}

// PositiveModulus returns the operator that maps ids into [0, modulus).
func PositiveModulus(modulus int64) Op { return op("positive_modulus", arg("modulus", Int(modulus))) }

// HexToInt returns the operator that reads hexadecimal strings.
func HexToInt() Op { return op("hex_to_int") }

// HashBytes returns the operator that hashes strings to ids by a function: xxh3, murmur3_32 or farmhash64.
func HashBytes(function string) Op { return op("hash_bytes", arg("function", Text(function))) }

// LocalHour returns the operator that makes hours, 0 to 23, of seconds since 1970 in a time zone, as Europe/Berlin.
func LocalHour(zone string) Op { return op(localHourName, arg("zone", Text(zone))) }

// MapID returns the operator that replaces ids by a table's values, and ids that the table lacks by other.
func MapID(table IDTable, other int64) Op {
	return op("map_id", arg("table", table), arg("default", Int(other)))
}

// MapText returns the operator that replaces texts by a table's values. Options are given as Arg{Name: "default", Value:
// Int(0)}; without them a text that the table lacks fails its split.
func MapText(table TextTable, options ...Arg) Op {
	return op("map_text", append([]Arg{arg("table", table)}, options...)...)
}

// ToSeconds returns the operator that counts times in seconds. Options are given as Arg{Name: "unit", Value:
// Text("millis")}.
func ToSeconds(options ...Arg) Op { return op("to_seconds", options...) }

// ToDays returns the operator that counts times in days. Options are those of ToSeconds.
func ToDays(options ...Arg) Op { return op("to_days", options...) }

// Decimal returns the operator that reads decimals as a kind of numbers: float32, float64 or int64.
func Decimal(to string) Op { return op("decimal", arg("to", Text(to))) }

// FixedLength returns the operator that makes dense columns of lists of one length. Options are given as Arg{Name:
// "pad", Value: Int(0)}.
func FixedLength(length int64, options ...Arg) Op {
	return op("fixed_length", append([]Arg{arg("length", Int(length))}, options...)...)
}

// ZeroExtend returns the operator that re-reads ids as unsigned 32-bit numbers.
func ZeroExtend() Op { return op("zero_extend") }

// FirstX returns the operator that keeps the first n elements of lists.
func FirstX(n int64) Op { return op("firstx", arg("n", Int(n))) }

// Logit returns the operator ln(t / (1 - t)), t the value clamped to [eps, 1 - eps].
func Logit(eps Number) Op { return op("logit", arg("eps", eps)) }

// BoxCox returns the operator (t^lambda1 - 1) / lambda1. Options are given as Arg{Name: "lambda2", Value: Int(1)}.
func BoxCox(lambda1 Number, options ...Arg) Op {
	return op("box_cox", append([]Arg{arg("lambda1", lambda1)}, options...)...)
}

// ListSlice returns the operator that keeps list[start:end] of lists, as Python has it. Options are given as Arg{Name:
// "pad", Value: Int(0)}; without the option end the part ends with the list.
func ListSlice(start int64, options ...Arg) Op {
	return op("list_slice", append([]Arg{arg("start", Int(start))}, options...)...)
}

// Normalize returns the operator (x - mean) / deviation.
func Normalize(mean, deviation Number) Op {
	return op("normalize", arg("mean", mean), arg("deviation", deviation))
}

// NormalizeBy returns the operator (x - mean) / deviation, with the mean and the deviation of statistics.
func NormalizeBy(name string) Op { return op("normalize", arg(statisticsParameter, Text(name))) }

// TargetEncoding returns the operator that replaces keys by smoothed means of the label: of the other folds than the
// row's, for training. It ends a chain of a dense feature.
func TargetEncoding(name string) Op {
	return op(targetEncodingOperator, arg(statisticsParameter, Text(name)))
}

// FillMedian returns the operator that replaces nulls by the median of statistics.
func FillMedian(name string) Op { return op(fillMedianOperator, arg(statisticsParameter, Text(name))) }

// MinMaxBy returns the operator (x - low) / (high - low), with the least and the greatest value of statistics.
func MinMaxBy(name string) Op { return op("min_max", arg(statisticsParameter, Text(name))) }

// MinMax returns the operator (x - low) / (high - low).
func MinMax(low, high Number) Op { return op("min_max", arg("min", low), arg("max", high)) }

// NGram returns the operator that makes an id of every n consecutive ids of lists. Options are given as Arg{Name:
// "mode", Value: Text("rap")}.
func NGram(n int64, options ...Arg) Op {
	return op("ngram", append([]Arg{arg("n", Int(n))}, options...)...)
}

// Cartesian returns the operator of two inputs that makes an id of every pair of their ids. Options are given as
// Arg{Name: "max_length", Value: Int(100)}.
func Cartesian(options ...Arg) Op { return op("cartesian", options...) }

// IDListTransform returns the operator of two inputs that keeps the ids of the first that are in the second.
func IDListTransform() Op { return op("id_list_transform") }

// ComputeScore returns the operator of two to four inputs that compares lists of ids by a function, as
// "get_jaccard_similarity". Options are given as Arg{Name: "zero_norm", Value: Text("zero")}.
func ComputeScore(function string, options ...Arg) Op {
	return op("compute_score", append([]Arg{arg("function", Text(function))}, options...)...)
}

// Enumerate returns the operator that gives each id of a list its position as its score.
func Enumerate() Op { return op("enumerate") }

// WithScores returns the operator of two inputs that gives the ids of the first the scores of the second.
func WithScores() Op { return op("with_scores") }

// Scores returns the operator that takes the scores of a list of ids as numbers.
func Scores() Op { return op("scores") }

// OneHot returns the operator that makes a dense column of each class. Options are given as Arg{Name: "lower", Value:
// Real(0)}; without the options lower and upper, values are ids.
func OneHot(classes int64, options ...Arg) Op {
	return op("onehot", append([]Arg{arg("classes", Int(classes))}, options...)...)
}

// HashCross returns the operator of several inputs that hashes an id of each together into [0, buckets).
func HashCross(buckets int64) Op { return op("hash_cross", arg("buckets", Int(buckets))) }

// Wasm returns the operator of one or several inputs that calls a function of a WebAssembly module for each row. in and
// out are kinds of values: int64, float32, float64.
func Wasm(module, function string, in []string, out string) Op {
	return op(wasmOperator, arg("module", Text(module)), arg("function", Text(function)), arg("in", Words(in)),
		arg("out", Text(out)))
}

// HashBucket returns the operator that hashes an id into [0, buckets).
func HashBucket(buckets int64) Op { return op("hash_bucket", arg("buckets", Int(buckets))) }

// Identity returns the operator that changes nothing.
func Identity() Op { return op("identity") }

func op(name string, args ...Arg) Op       { return Op{Name: name, Args: args} }
func arg(name string, v Value) Arg         { return Arg{Name: name, Value: v} }
func (o *Op) arg(name string) (*Arg, bool) { return find(o.Args, name) }

func find(args []Arg, name string) (*Arg, bool) {
	for i := range args {
		if args[i].Name == name {
			return &args[i], true
		}
	}
	return nil, false
}
