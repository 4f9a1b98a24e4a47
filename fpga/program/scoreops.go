package program

import "fmt"

// ComputeScore compares the ids of two lists and yields one Float32 a row, which is never null. Its inputs are ids,
// scores of these ids, matching ids and scores of the matching ids; those scores that the function does not take are
// left out. Ids are Int64 and scores Float32, in lists or scalars, which are lists of one value. A list that holds a
// null counts as empty.
type ComputeScore struct {
	Function ScoreFunction
	ZeroNorm ZeroNorm // other than ZeroNormFail only with ScoreCosine
}

// ScoreFunction is what ComputeScore computes.
type ScoreFunction uint8

// The functions. The numbers are part of the wire form.
const (
	ScoreHasOverlap   ScoreFunction = 0 // inputs: ids, matching ids; so are those of the next three
	ScoreOverlapCount ScoreFunction = 1
	ScoreMaxCount     ScoreFunction = 2
	ScoreJaccard      ScoreFunction = 3
	ScoreCosine       ScoreFunction = 4 // inputs: ids, scores, matching ids, matching scores
	ScoreSum          ScoreFunction = 5 // inputs: ids, matching ids, matching scores; so are those of the next two
	ScoreMin          ScoreFunction = 6
	ScoreMax          ScoreFunction = 7
)

// ZeroNorm says what becomes of a row without a cosine, since the scores of a side have the norm 0.
type ZeroNorm uint8

// The treatments of a norm of 0. The numbers are part of the wire form.
const (
	ZeroNormFail ZeroNorm = 0 // the split fails
	ZeroNormZero ZeroNorm = 1 // the cosine is 0
)

// scoreFunctions are the functions' names, as TorchArrow has them, and the kinds of their inputs.
var scoreFunctions = []struct {
	name   string
	inputs []Kind
}{
	ScoreHasOverlap:   {"has_id_overlap", []Kind{Int64, Int64}},
	ScoreOverlapCount: {"id_overlap_count", []Kind{Int64, Int64}},
	ScoreMaxCount:     {"get_max_count", []Kind{Int64, Int64}},
	ScoreJaccard:      {"get_jaccard_similarity", []Kind{Int64, Int64}},
	ScoreCosine:       {"get_cosine_similarity", []Kind{Int64, Float32, Int64, Float32}},
	ScoreSum:          {"get_score_sum", []Kind{Int64, Int64, Float32}},
	ScoreMin:          {"get_score_min", []Kind{Int64, Int64, Float32}},
	ScoreMax:          {"get_score_max", []Kind{Int64, Int64, Float32}},
}

// String returns the function's name as pipelines write it.
func (f ScoreFunction) String() string {
	if int(f) < len(scoreFunctions) {
		return scoreFunctions[f].name
	}
	return fmt.Sprintf("function(%d)", uint8(f))
}

// Inputs returns the kinds of the inputs that the function takes; none if the function is unknown.
func (f ScoreFunction) Inputs() []Kind {
	if int(f) < len(scoreFunctions) {
		return scoreFunctions[f].inputs
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

// Unit implements [Combiner].
func (ComputeScore) Unit() Unit { return UnitComputeScore }

// Yield implements [Combiner].
func (o ComputeScore) Yield(inputs []ValueType) (ValueType, bool) {
	kinds := o.Function.Inputs()
	if len(kinds) == 0 || len(inputs) != len(kinds) {
		return ValueType{}, false
	}
	for i, in := range inputs {
		if in.Kind != kinds[i] {
			return ValueType{}, false
		}
	}
	return ValueType{Kind: Float32}, true
}

// check checks the parameters.
func (o ComputeScore) check() error {
	switch {
	case o.ZeroNorm > ZeroNormZero:
		return fmt.Errorf("%v is no treatment of a norm of 0", o.ZeroNorm)
	case o.ZeroNorm != ZeroNormFail && o.Function != ScoreCosine:
		return fmt.Errorf("%v has no norm that may be 0", o.Function)
	}
	return nil
}
