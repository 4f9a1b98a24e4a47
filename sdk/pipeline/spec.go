package pipeline

import (
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/selection"
)

// DefaultBatch is the number of rows of a mini-batch if a spec gives none: PreSto's, Table I.
const DefaultBatch = 8192

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

// With returns a parameter of an operator.
func With(name string, v Value) Arg { return Arg{Name: name, Value: v} }

// op returns an operator with its parameters in the catalogue's order, behind which unknown ones come.
func op(name string, args ...Arg) Op {
	o := Op{Name: name, Args: args}
	if entry := operators[name]; entry != nil {
		place := func(a Arg) int {
			if i := slices.IndexFunc(entry.Params, func(p Param) bool { return p.Name == a.Name }); i >= 0 {
				return i
			}
			return len(entry.Params)
		}
		o.Args = slices.SortedStableFunc(slices.Values(args), func(a, b Arg) int { return place(a) - place(b) })
	}
	return o
}

// Argument returns the argument of a name, and false if the operator was given none.
func (o *Op) Argument(name string) (*Arg, bool) { return find(o.Args, name) }

func find(args []Arg, name string) (*Arg, bool) {
	for i := range args {
		if args[i].Name == name {
			return &args[i], true
		}
	}
	return nil, false
}

// Given implements [catalogue.Arguments].
func (o *Op) Given(name string) (Value, bool) {
	a, ok := o.Argument(name)
	if !ok {
		return nil, false
	}
	return a.Value, true
}
