package pipeline

import (
	"math"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/program"
)

func checkCartesian(p *problems, o *Op, a location) {
	if n, ok := o.arg("max_length"); ok && n.Value.(Number).Int > program.MaxCartesian {
		p.add(a.key("max_length", firstPos(n.Pos, a.pos)), ErrValue, "%s, want at most %d", n.Value, program.MaxCartesian)
	}
}

// overflowRules are the meanings of cartesian's words.
var overflowRules = map[string]program.Overflow{"cut": program.OverflowCut, "fail": program.OverflowFail}

func combineIDListTransform(c *combination, o *Op, _ location) {
	if c.requireIDs(o) {
		c.yield(program.IDListTransform{}, c.inputs[0].ids, c.inputs[0].bounded)
	}
}

func combineCartesian(c *combination, o *Op, _ location) {
	if c.requireIDs(o) {
		c.yield(program.Cartesian{MaxLength: c.number(o, "max_length").Int, Overflow: overflowRules[c.word(o, "overflow")]},
			idRange{math.MinInt64, math.MaxInt64}, false)
	}
}

func combineHashCross(c *combination, o *Op, _ location) {
	for i := range c.inputs {
		if c.inputs[i].column.List {
			c.refuse(c.places[i], ErrColumnType, "hash_cross takes one value a row, and these are lists; cartesian takes lists")
		}
	}
	if !c.failed && c.requireIDs(o) {
		n := c.number(o, "buckets").Int
		c.yield(program.HashCross{Buckets: n}, idRange{0, n - 1}, true)
	}
}

func applyHashBucket(c *chain, o *Op, a location) {
	if c.requireIntegers(o, a) {
		n := c.number(o, "buckets").Int
		c.appendOp(program.HashBucket{Buckets: n})
		c.ids, c.bounded = idRange{0, n - 1}, true
	}
}

// scoreFunctionNames returns the functions of compute_score in the order of their numbers.
func scoreFunctionNames() []string {
	var names []string
	for f := program.ScoreHasOverlap; f <= program.ScoreMax; f++ {
		names = append(names, f.String())
	}
	return names
}

// scoreFunction returns the function of compute_score, whose name was checked; without a name it is the first.
func scoreFunction(o *Op) program.ScoreFunction {
	word, ok := o.arg("function")
	if !ok {
		return 0
	}
	return program.ScoreFunction(slices.Index(scoreFunctionNames(), string(word.Value.(Text))))
}

// zeroNorms are the meanings of compute_score's words.
var zeroNorms = map[string]program.ZeroNorm{"fail": program.ZeroNormFail, "zero": program.ZeroNormZero}

func checkComputeScore(p *problems, o *Op, a location) {
	f := scoreFunction(o)
	if zero, ok := o.arg("zero_norm"); ok && zeroNorms[string(zero.Value.(Text))] != program.ZeroNormFail &&
		f != program.ScoreCosine {
		p.add(a.key("zero_norm", firstPos(zero.Pos, a.pos)), ErrValue, "%v has no norm; leave zero_norm out", f)
	}
}

func combineComputeScore(c *combination, o *Op, a location) {
	f := scoreFunction(o)
	kinds := f.Inputs()
	if len(c.inputs) != len(kinds) {
		words := map[program.Kind][]string{program.Int64: {"ids", "matching ids"},
			program.Float32: {"scores", "matching scores"}}
		if len(kinds) == 3 {
			words[program.Float32] = words[program.Float32][1:]
		}
		var want []string
		for _, kind := range kinds {
			want = append(want, words[kind][0])
			words[kind] = words[kind][1:]
		}
		c.refuse(a, ErrValue, "%v takes %d inputs (%s), and these are %d", f, len(kinds), strings.Join(want, ", "),
			len(c.inputs))
		return
	}
	for i, kind := range kinds {
		if !c.settleInput(i, o, kind) {
			return
		}
		in := chain{r: c.r, column: &c.inputs[i].column, kind: c.inputs[i].kind, ops: slices.Clone(c.inputs[i].ops)}
		if kind == program.Int64 {
			in.requireIntegers(o, c.places[i])
		} else if in.requireNumbers(o, c.places[i]) {
			in.convert(program.Float32)
			c.inputs[i].ops, c.inputs[i].kind = in.ops, in.kind
		}
		c.failed = c.failed || in.failed
	}
	if c.failed {
		return
	}
	c.yield(program.ComputeScore{Function: f, ZeroNorm: zeroNorms[c.word(o, "zero_norm")]},
		idRange{math.MinInt64, math.MaxInt64}, false)
	c.value.step.nullable, c.value.step.nullableIfMalformed = false, false
}
