package engine

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/computescore"
)

// scoreCombiner is the operator compute_score.
type scoreCombiner struct{ params computescore.Params }

// newScoreCombiner makes compute_score ready.
func newScoreCombiner(o program.ComputeScore) (*scoreCombiner, error) {
	c := &scoreCombiner{params: computescore.Params{ZeroNorm: o.ZeroNorm == program.ZeroNormZero}}
	switch o.Function {
	case program.ScoreHasOverlap:
		c.params.Function = computescore.HasIDOverlap
	case program.ScoreOverlapCount:
		c.params.Function = computescore.IDOverlapCount
	case program.ScoreMaxCount:
		c.params.Function = computescore.MaxCount
	case program.ScoreJaccard:
		c.params.Function = computescore.JaccardSimilarity
	case program.ScoreCosine:
		c.params.Function = computescore.CosineSimilarity
	case program.ScoreSum:
		c.params.Function = computescore.ScoreSum
	case program.ScoreMin:
		c.params.Function = computescore.ScoreMin
	case program.ScoreMax:
		c.params.Function = computescore.ScoreMax
	default:
		return nil, fmt.Errorf("%v is no function of this engine", o.Function)
	}
	return c, nil
}

// mostElements implements combiner.
func (*scoreCombiner) mostElements([]int64) int64 { return 1 }

// combine implements combiner.
func (c *scoreCombiner) combine(to *graphValue, inputs []*chainValues, rows int) error {
	at := 0
	side := func(scored bool) (s computescore.Side) {
		ids := to.listOf(at, inputs[at])
		s.Lengths, s.IDs = ids.Lengths, ids.IDs
		if at++; scored {
			s.ScoreLengths, s.Scores = to.scoresOf(at, inputs[at])
			at++
		}
		return s
	}
	input, matching := side(c.params.Function.InputScores()), side(c.params.Function.MatchingScores())
	to.float32s = resize(&to.float32s, rows)
	to.view = chainValues{kind: program.Float32, count: rows, float32s: to.float32s, ownsValues: true}
	return to.scorer.Score(to.float32s, input, matching, c.params)
}

// scoresOf returns input i of a step as lists of scores: a scalar is a list of one score, and a null an empty one.
func (g *graphValue) scoresOf(i int, v *chainValues) (lengths []int32, scores []float32) {
	if v.list {
		return v.lengths, v.float32s[:v.count]
	}
	lengths = resize(&g.listLengths[i], v.count)
	g.listLengths[i] = lengths
	if v.valid == nil {
		for r := range lengths {
			lengths[r] = 1
		}
		return lengths, v.float32s[:v.count]
	}
	scores = resize(&g.listScores[i], v.count)[:0]
	for r, ok := range v.valid[:v.count] {
		if lengths[r] = int32(ok); ok != 0 {
			scores = append(scores, v.float32s[r])
		}
	}
	g.listScores[i] = scores
	return lengths, scores
}
