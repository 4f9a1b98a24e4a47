package pipeline

import "github.com/millrace/millrace/fpga/program"

// DefaultBatch is the number of rows of a mini-batch when a spec does not say: PreSto's, Table I.
const DefaultBatch = 8192

// MaxBatch bounds Spec.Batch.
const MaxBatch = 1 << 24

// Spec is a feature pipeline as a person writes it. It is data: build it in Go, or read it with [Parse] or [Named].
type Spec struct {
	Name  string      // what people call it; not part of a job's identity
	Batch int         // rows of a mini-batch, at most MaxBatch; 0: DefaultBatch
	IDs   program.IDs // type of sparse values; the zero value is int64

	Label     *Label // nil: mini-batches have no label
	Dense     []Group
	Sparse    []Group
	Generated []Group // sparse features made from other columns; their keys come behind Sparse's
}

// Label is the column with what is to be predicted.
type Label struct {
	Column string
	Ops    []Op
	Pos    Pos
}

// Group is some columns that share a chain of operators. Each column becomes one feature.
type Group struct {
	Columns []Pattern // in order; see Pattern
	Ops     []Op      // from the column to the tensor
	// As names the features: {column} is the column's name, {n} the number at its end or the key in a map, {i} its place in the group from
	// 0. Empty: the column's name.
	As string
	// DropScores leaves out the scores of scored lists, which would become the weights of their ids.
	DropScores bool
	Pos        Pos
}

// Pattern names columns: "int_0", "int_0..int_12" (in numeric order, both ends included) or "int_*" (in the schema's
// order); or features of a column that is a map: "ids[101]", "ids[101..120, 205]". A column whose name is the whole text
// comes before any other reading.
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

// Op is an operator with its parameters, as written; [Catalogue] tells which there are.
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

// Value is the value of a parameter: a Number, a Text or Borders.
type Value interface{ value() }

// Number is a number as it was written: what is written without fraction and exponent is an integer, and is exact up
// to 64 bits.
type Number struct {
	Int     int64
	Float   float64
	Integer bool // Int holds, else Float
}

// Text is one word of a choice.
type Text string

// Borders are the borders of buckets: a list, or how to make one.
type Borders struct {
	List      []Number
	LogSpaced *LogSpaced // instead of List
	Pos       Pos
}

// LogSpaced makes Count borders from From to To, spaced evenly on a logarithmic scale: border i is
// exp(ln From + i (ln To - ln From)/(Count-1)), correctly rounded, the ends exact.
type LogSpaced struct {
	From, To float64 // 0 < From < To
	Count    int     // at least 2
}

func (Number) value()  {}
func (Text) value()    {}
func (Borders) value() {}

// Real returns the number as a float64, to the nearest.
func (n Number) Real() float64 {
	if n.Integer {
		return float64(n.Int)
	}
	return n.Float
}

// Int is a whole number.
func Int(n int64) Number { return Number{Int: n, Integer: true} }

// Real is a number that need not be whole.
func Real(x float64) Number { return Number{Float: x} }

// FillNull replaces nulls by a value.
func FillNull(value Number) Op { return op("fill_null", arg("value", value)) }

// Clamp bounds values from both sides.
func Clamp(lo, hi Number) Op { return op("clamp", arg("min", lo), arg("max", hi)) }

// ClampMin bounds values from below. With 0 it is Piper's Neg2Zero.
func ClampMin(lo Number) Op { return op("clamp", arg("min", lo)) }

// ClampMax bounds values from above.
func ClampMax(hi Number) Op { return op("clamp", arg("max", hi)) }

// Log is ln(x + add).
func Log(add Number) Op { return op("log", arg("add", add)) }

// Bucketize turns numbers into numbers of buckets. Options are given as Arg{Name: "side", Value: Text("right")}.
func Bucketize(b Borders, options ...Arg) Op {
	return op("bucketize", append([]Arg{arg("borders", b)}, options...)...)
}

// SigridHash hashes ids into [0, max).
func SigridHash(salt, max int64) Op {
	return op("sigrid_hash", arg("salt", Int(salt)), arg("max", Int(max)))
}

// PositiveModulus maps ids into [0, modulus).
func PositiveModulus(modulus int64) Op { return op("positive_modulus", arg("modulus", Int(modulus))) }

// HexToInt reads hexadecimal strings.
func HexToInt() Op { return op("hex_to_int") }

// ZeroExtend re-reads ids as unsigned 32-bit numbers.
func ZeroExtend() Op { return op("zero_extend") }

// FirstX keeps the first n elements of lists.
func FirstX(n int64) Op { return op("firstx", arg("n", Int(n))) }

// Identity changes nothing.
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
