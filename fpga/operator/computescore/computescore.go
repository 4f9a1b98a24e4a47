// Package computescore is the operator compute_score: its parameters, and what they may be.
package computescore

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Op compares the ids of two lists and yields one Float32 a row, which is never null. Its inputs are ids, scores of
// these ids, matching ids and scores of the matching ids; those scores that the function does not take are left out.
// Ids are Int64 and scores Float32, in lists or scalars, which are lists of one value. A list that holds a null counts
// as empty.
type Op struct {
	Function Function
	ZeroNorm ZeroNorm // other than ZeroNormFail only with Cosine
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 54

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "compute_score", Version: 1,
	ReadCombiner: func(f program.Fields) program.Combiner {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"function", "zero_norm"}, In: []string{"int64", "float32", "int64", "float32"}, Out: "float32",
}

// Unit implements [program.Combiner].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Combiner].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	f.Choice("function", (*uint8)(&o.Function), o.Function.String())
	f.Choice("zero_norm", (*uint8)(&o.ZeroNorm), o.ZeroNorm.String())
}

// Check implements [program.Combiner].
func (o Op) Check() error {
	switch {
	case o.ZeroNorm > ZeroNormZero:
		return fmt.Errorf("%v is not a treatment of a norm of 0", o.ZeroNorm)
	case o.ZeroNorm != ZeroNormFail && o.Function != Cosine:
		return fmt.Errorf("%v has no norm that may be 0", o.Function)
	}
	return nil
}

// Yield implements [program.Combiner].
func (o Op) Yield(inputs []program.ValueType) (program.ValueType, bool) {
	kinds := o.Function.Inputs()
	if len(kinds) == 0 || len(inputs) != len(kinds) {
		return program.ValueType{}, false
	}
	for i, in := range inputs {
		if in.Kind != kinds[i] {
			return program.ValueType{}, false
		}
	}
	return program.ValueType{Kind: program.Float32}, true
}

// Function is what is computed.
type Function uint8

// The functions. The numbers are part of the wire form.
const (
	HasOverlap   Function = 0 // inputs: ids, matching ids; so are those of the next three
	OverlapCount Function = 1
	MaxCount     Function = 2
	Jaccard      Function = 3
	Cosine       Function = 4 // inputs: ids, scores, matching ids, matching scores
	Sum          Function = 5 // inputs: ids, matching ids, matching scores; so are those of the next two
	Min          Function = 6
	Max          Function = 7
)

// ZeroNorm says what becomes of a row without a cosine, since the scores of a side have the norm 0.
type ZeroNorm uint8

// The treatments of a norm of 0. The numbers are part of the wire form.
const (
	ZeroNormFail ZeroNorm = 0 // the split fails
	ZeroNormZero ZeroNorm = 1 // the cosine is 0
)

// MostElements returns 1, because the operator makes one number of a row.
func (Op) MostElements([]program.Extent) uint64 { return 1 }

// functions are the functions' names, as TorchArrow has them, and the kinds of their inputs.
var functions = []struct {
	name   string
	inputs []program.Kind
}{
	HasOverlap:   {"has_id_overlap", []program.Kind{program.Int64, program.Int64}},
	OverlapCount: {"id_overlap_count", []program.Kind{program.Int64, program.Int64}},
	MaxCount:     {"get_max_count", []program.Kind{program.Int64, program.Int64}},
	Jaccard:      {"get_jaccard_similarity", []program.Kind{program.Int64, program.Int64}},
	Cosine: {"get_cosine_similarity", []program.Kind{program.Int64, program.Float32, program.Int64,
		program.Float32}},
	Sum: {"get_score_sum", []program.Kind{program.Int64, program.Int64, program.Float32}},
	Min: {"get_score_min", []program.Kind{program.Int64, program.Int64, program.Float32}},
	Max: {"get_score_max", []program.Kind{program.Int64, program.Int64, program.Float32}},
}

// String returns the function's name as pipelines write it.
func (f Function) String() string {
	if int(f) < len(functions) {
		return functions[f].name
	}
	return fmt.Sprintf("function(%d)", uint8(f))
}

// Inputs returns the kinds of the inputs that the function takes; none if the function is unknown.
func (f Function) Inputs() []program.Kind {
	if int(f) < len(functions) {
		return functions[f].inputs
	}
	return nil
}

// String returns the treatment's name as pipelines write it.
func (z ZeroNorm) String() string {
	switch z {
	case ZeroNormFail:
		return "fail"
	case ZeroNormZero:
		return "zero"
	}
	return fmt.Sprintf("zero norm(%d)", uint8(z))
}
