// Package kernel makes the operator compute_score ready to run over blocks.
package kernel

import (
	"fmt"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/computescore"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/computescore"
)

// Unit is the unit that computes the operator.
const Unit = computescore.Unit

// combiner computes a score of two lists of ids.
type combiner struct{ params unit.Params }

// CompileCombiner makes the operator ready.
func CompileCombiner(c program.Combiner, _ *block.Tables) (block.Combiner, error) {
	o := c.(computescore.Op)
	function, ok := functions[o.Function]
	if !ok {
		return nil, fmt.Errorf("%v is not a function of this engine", o.Function)
	}
	return &combiner{unit.Params{Function: function, ZeroNorm: o.ZeroNorm == computescore.ZeroNormZero}}, nil
}

// functions are the unit's functions by their names in programs.
var functions = map[computescore.Function]unit.Function{
	computescore.HasOverlap:   unit.HasIDOverlap,
	computescore.OverlapCount: unit.IDOverlapCount,
	computescore.MaxCount:     unit.MaxCount,
	computescore.Jaccard:      unit.JaccardSimilarity,
	computescore.Cosine:       unit.CosineSimilarity,
	computescore.Sum:          unit.ScoreSum,
	computescore.Min:          unit.ScoreMin,
	computescore.Max:          unit.ScoreMax,
}

// Combine implements block.Combiner.
func (c *combiner) Combine(to *block.GraphValue, inputs []*block.Values, rows int) error {
	at := 0
	side := func(scored bool) (s unit.Side) {
		ids := to.ListOf(at, inputs[at])
		s.Lengths, s.IDs = ids.Lengths, ids.IDs
		if at++; scored {
			s.ScoreLengths, s.Scores = to.ScoresOf(at, inputs[at])
			at++
		}
		return s
	}
	input, matching := side(c.params.Function.InputScores()), side(c.params.Function.MatchingScores())
	to.Float32s = block.Resize(&to.Float32s, rows)
	to.View = block.Values{Kind: program.Float32, Count: rows, Float32s: to.Float32s, OwnsValues: true}
	return block.StateOf[unit.Scorer](to).Score(to.Float32s, input, matching, c.params)
}
