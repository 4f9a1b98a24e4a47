package catalogue

import (
	"math"

	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of an operator.
type Entry struct {
	Name    string
	Summary string
	Params  []Param
	Takes   string // Kinds of values, and what is converted.
	Yields  string
	Nulls   string
	Lists   string
	Errors  string
	Source  string // Where the definition comes from.
	Unit    program.Unit
	Inputs  int // How many inputs an operator of several takes at least; 0: it takes one value.
	// MaxInputs is how many inputs the operator takes at most; 0: as many as Inputs.
	MaxInputs int
	// Example is one use, as YAML; empty for an operator without parameters.
	Example string
	// Cost estimates the nanoseconds of one core for a value: the figures of docs/performance-kernels.md for AVX2, or for
	// plain Go where that page has no other. The figures were measured on different machines, some of them busy. They
	// show which step of a pipeline costs the most, and not how long a job takes. Cost is nil if nothing was measured.
	Cost func(a Arguments) float64
	// Reads returns how the operator uses a column. It returns UsedAsUnknown if the next operator decides that. An
	// operator without Reads uses a column as ids.
	Reads func(a Arguments) Use

	// Check checks what the types of the parameters leave open. The caller has checked the types. Check may be nil.
	Check func(c Check)
	// Apply adds the operator to a chain.
	Apply func(c Chain)
	// Combine applies an operator of several inputs, which has no Apply.
	Combine func(c Combination)
}

// Param returns the parameter of a name, or nil if the operator has none of that name.
func (e *Entry) Param(name string) *Param {
	for i := range e.Params {
		if e.Params[i].Name == name {
			return &e.Params[i]
		}
	}
	return nil
}

// Lone returns the parameter that may be written alone, as in fill_null: 0, or nil if there is none. An operator has
// one if it has a single parameter and that has no default, or if the first of its parameters says so.
func (e *Entry) Lone() *Param {
	if len(e.Params) == 1 && e.Params[0].Default == nil || len(e.Params) > 1 && e.Params[0].Alone {
		return &e.Params[0]
	}
	return nil
}

// Use is how an operator uses a column.
type Use uint8

// The uses.
const (
	UsedAsUnknown  Use = iota
	UsedByOperator     // The operator reads what the column's annotation says.
	UsedAsIDs
	UsedAsFloat32
	UsedAsFloat64
)

// As returns the use of an operator that uses columns in one way.
func As(u Use) func(Arguments) Use { return func(Arguments) Use { return u } }

// Costs returns the estimate of an operator that costs the same with all parameters.
func Costs(nanoseconds float64) func(Arguments) float64 {
	return func(Arguments) float64 { return nanoseconds }
}

// Arguments are the parameters of an operator as a document gives them.
type Arguments interface {
	// Given returns a parameter that is given; ok is false if it is left out.
	Given(name string) (v Value, ok bool)
}

// Check reports what is wrong with the parameters of an operator.
type Check interface {
	Arguments
	// Wrong adds an error about a parameter, or about the operator if name is empty. kind is one of the errors below.
	Wrong(name string, kind error, format string, args ...any)
	// HasConstants checks that either all of the parameters are given or the name of statistics, and reports whether it is
	// the parameters.
	HasConstants(names ...string) bool
	// CheckZone returns an error if there is no time zone of a name.
	CheckZone(name string) error
}

// Range is a range of integers, both ends included.
type Range struct{ Low, High int64 }

// AllIntegers is the range of all int64.
var AllIntegers = Range{Low: math.MinInt64, High: math.MaxInt64}

// FitsInt32 reports whether every integer of the range is an int32.
func (r Range) FitsInt32() bool { return r.Low >= math.MinInt32 && r.High <= math.MaxInt32 }

// Chain is a value on its way through its operators.
type Chain interface {
	Arguments
	// Value, Number and Word return a parameter as given, or its default.
	Value(name string) Value
	Number(name string) Number
	Word(name string) string

	Kind() program.Kind
	// IsUnsigned reports whether the values are the bits of unsigned integers of 64 bits.
	IsUnsigned() bool
	IsList() bool
	// IsDenseList reports whether the values are elements of lists that become dense columns.
	IsDenseList() bool
	// IsMap reports whether the value is a feature of a map.
	IsMap() bool
	// FromText reports whether rows are of text, which have at most one value a key.
	FromText() bool
	// Annotation returns the logical type of the values in the file. It returns an empty text if the column has none, or
	// if the operators so far have changed what the values count.
	Annotation() string
	// Logical returns the logical type of the column in the file.
	Logical() string
	// IsCategory reports whether equal values of a column of bytes have equal bytes, so that a hash of the bytes is an
	// id of the value.
	IsCategory() bool
	// DescribeBytes returns what a column of bytes contains and which operator reads it, for an error message.
	DescribeBytes() string
	// Scored reports whether the chain begins with ids that have scores.
	Scored() bool
	// Ops returns the operators so far.
	Ops() []program.Op

	// Refuse adds an error and ends the chain.
	Refuse(kind error, format string, args ...any)
	// RequireText refuses values that are not text, and reports whether the operator takes them.
	RequireText() bool
	// RequireNumbers refuses bytes, and RequireIntegers refuses values that are not int64. Both report whether the
	// operator takes the values.
	RequireNumbers() bool
	RequireIntegers() bool
	// RequireReals converts numbers to float32. It refuses bytes and lists that do not become dense columns, and reports
	// whether the operator takes the values.
	RequireReals() bool
	// WholeNumber returns a number for int64 values, and refuses a fraction.
	WholeNumber(name string, n Number) int64
	// RealNumber returns a number for float32 values, rounded to float32, or for float64 values.
	RealNumber(name string, n Number) float64

	// Convert adds a conversion if the values are of another kind.
	Convert(to program.Kind)
	// Append adds an operator to the chain. The values then have the kind that the operator yields.
	Append(op program.Op)
	// IDs returns the range of int64 values, and Bounded reports whether an operator, and not only their type, bounds the
	// values. SetIDs sets both.
	IDs() Range
	Bounded() bool
	SetIDs(r Range, bounded bool)
	// FillsNulls records that the operator replaces every null. MakesNulls records that it makes nulls.
	FillsNulls()
	MakesNulls()
	// BeginStep ends the chain with a combiner of one input. The values of the combiner begin a new chain.
	BeginStep(o program.Combiner)

	// Statistics returns the statistics that the parameter StatisticsParameter names, of the value so far. It returns nil
	// after an error.
	Statistics() *Statistics
	// Zone returns the changes of a time zone's clocks: seconds since 1970 to offsets from UTC in seconds.
	Zone(name string) (IDTable, error)
	// ReadVaried reads a column as values of a kind if partitions store it in different types and no operator has read it.
	// It reports whether it did, or refused to.
	ReadVaried(to program.Kind) bool
	// DecimalScale returns the scale of the values. It refuses values that are not a DECIMAL or have too many digits.
	DecimalScale() (scale uint8, ok bool)
	// Shared returns the operator that another chain of the document has made under the same key, or makes it. The type
	// of a key belongs to the operator's package.
	Shared(key any, build func() (program.Op, error)) (program.Op, error)
	// CountNumbers counts the numbers of a table against the most that a document may have. Tables of the same key count
	// once.
	CountNumbers(key any, n int) error
}

// Combination is inputs on their way through the operator that takes them together.
type Combination interface {
	Arguments
	// Value, Number and Word return a parameter as given, or its default.
	Value(name string) Value
	Number(name string) Number
	Word(name string) string
	// Inputs returns the number of inputs.
	Inputs() int
	IsList(input int) bool
	// IsScored reports whether an input is ids with scores.
	IsScored(input int) bool
	IDs(input int) (r Range, bounded bool)
	// Take reads an input as ids (int64) or as real numbers (float32, float64). It refuses an input that has no such
	// values, and reports whether the operator takes the input.
	Take(input int, as program.Kind) bool
	// Refuse adds an error about an input, or about the operator if input is below 0.
	Refuse(input int, kind error, format string, args ...any)
	// RefuseParameter adds an error about a parameter.
	RefuseParameter(name string, kind error, format string, args ...any)
	// Module returns the digest of the WebAssembly module that a parameter names. It refuses a module that is not at
	// hand, and reports whether the module is.
	Module(parameter string) (digest program.ModuleDigest, ok bool)
	// Yield sets the value that the operator makes of the inputs. neverNull states that the value is never null.
	Yield(o program.Combiner, ids Range, bounded, neverNull bool)
}
