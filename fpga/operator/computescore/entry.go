package computescore

import (
	"math"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "compute_score", Unit: Unit, Inputs: 2, MaxInputs: 4,
	Example: "- compute_score: {function: get_jaccard_similarity}",

	Summary: "Compares two lists of ids, which may have scores, and makes one number a row. The functions are " +
		"TorchArrow's. `has_id_overlap`: 1 if an id is in both lists, else 0. `id_overlap_count`: how many ids are in " +
		"both, each as often as in the list that has it less often; `get_max_count`: as often as in the list that has it " +
		"more often. `get_jaccard_similarity`: c / (n + m - c) of the overlap count c and the lists' lengths, NaN if " +
		"both are empty. `get_cosine_similarity`: of the sums of the scores of each id. `get_score_sum`, " +
		"`get_score_min`, `get_score_max`: of the matching scores whose ids are in the first list, 0 without one.",
	Params: []catalogue.Param{
		{Name: "function", Type: catalogue.ParamChoice, Choices: functionNames(), Summary: "what is computed"},
		{Name: "zero_norm", Type: catalogue.ParamChoice, Choices: []string{"fail", "zero"}, Default: catalogue.Text("fail"),
			Summary: "what becomes of a row without a cosine, since the scores of a side have the norm 0, as of an empty " +
				"list: `fail` fails the split, `zero` makes it 0"},
	},
	Takes: "ids, matching ids; `get_score_sum`, `get_score_min` and `get_score_max`: ids, matching ids, matching " +
		"scores; `get_cosine_similarity`: ids, scores, matching ids, matching scores. Ids are int64; scores float32, or " +
		"int64 and float64, which become float32",
	Yields: "float32: the nearest to the exact value of the whole expression, ties to even. No order of ids changes it",
	Nulls: "a null, or a list that holds a null, has no ids or scores; a side whose ids or scores are none has " +
		"neither. The result is never null",
	Lists: "a scalar is a list of one value",
	Errors: "another number of inputs than the function takes; inputs that are not numbers. A row with another number " +
		"of scores than ids, or, with `zero_norm: fail`, with a norm of 0, fails the split. A NaN among the scores that " +
		"count makes the result NaN (7fc00000h), and so does an infinite score of a cosine",
	Source: "DPP ComputeScore; TorchArrow `rec/compute_score.h`, which rounds each step in the order of a hash table: " +
		"one rounding is ours, and so are `zero`, which it refuses, and the rule for nulls, which it hands on",
	Check:   checkArguments,
	Combine: combine,
}

func checkArguments(c catalogue.Check) {
	f := functionOf(c)
	if zero, ok := c.Given("zero_norm"); ok && zeroNorms[string(zero.(catalogue.Text))] != ZeroNormFail && f != Cosine {
		c.Wrong("zero_norm", catalogue.ErrValue, "%v has no norm; leave zero_norm out", f)
	}
}

func combine(c catalogue.Combination) {
	f := functionOf(c)
	kinds := f.Inputs()
	if c.Inputs() != len(kinds) {
		c.Refuse(-1, catalogue.ErrValue, "%v takes %d inputs (%s), and these are %d", f, len(kinds), describe(kinds),
			c.Inputs())
		return
	}
	taken := true
	for i, kind := range kinds {
		if taken = c.Take(i, kind) && taken; !taken {
			return
		}
	}
	all := catalogue.Range{Low: math.MinInt64, High: math.MaxInt64}
	c.Yield(Op{Function: f, ZeroNorm: zeroNorms[c.Word("zero_norm")]}, all, false, true)
}

// functionNames returns the functions in the order of their numbers.
func functionNames() []string {
	var names []string
	for f := range functions {
		names = append(names, Function(f).String())
	}
	return names
}

// functionOf returns the function, whose name was checked; without a name it is the first.
func functionOf(a catalogue.Arguments) Function {
	word, ok := a.Given("function")
	if !ok {
		return 0
	}
	return Function(slices.Index(functionNames(), string(word.(catalogue.Text))))
}

// zeroNorms are the treatments by name.
var zeroNorms = map[string]ZeroNorm{"fail": ZeroNormFail, "zero": ZeroNormZero}

// describe names the inputs of a function by their kinds.
func describe(kinds []program.Kind) string {
	words := map[program.Kind][]string{
		program.Int64: {"ids", "matching ids"}, program.Float32: {"scores", "matching scores"},
	}
	if len(kinds) == 3 {
		words[program.Float32] = words[program.Float32][1:]
	}
	var want []string
	for _, kind := range kinds {
		want = append(want, words[kind][0])
		words[kind] = words[kind][1:]
	}
	return strings.Join(want, ", ")
}
