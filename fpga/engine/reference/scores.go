package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/computescore"
)

// scoreOf returns what compute_score makes of a row.
func scoreOf(o program.ComputeScore, inputs []any) (any, error) {
	functions := map[program.ScoreFunction]computescore.Function{
		program.ScoreHasOverlap: computescore.HasIDOverlap, program.ScoreOverlapCount: computescore.IDOverlapCount,
		program.ScoreMaxCount: computescore.MaxCount, program.ScoreJaccard: computescore.JaccardSimilarity,
		program.ScoreCosine: computescore.CosineSimilarity, program.ScoreSum: computescore.ScoreSum,
		program.ScoreMin: computescore.ScoreMin, program.ScoreMax: computescore.ScoreMax,
	}
	p := computescore.Params{Function: functions[o.Function], ZeroNorm: o.ZeroNorm == program.ZeroNormZero}
	var scores, matchingScores []float32
	ids, rest := idsOf(inputs[0]), inputs[1:]
	if o.Function == program.ScoreCosine {
		scores, rest = scoresOf(rest[0]), rest[1:]
	}
	matching := idsOf(rest[0])
	if len(o.Function.Inputs()) > 2 {
		matchingScores = scoresOf(rest[1])
	}
	score, err := computescore.Reference(ids, scores, matching, matchingScores, p)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrData, err)
	}
	return score, nil
}

// scoresOf returns the scores of a row's value: none of a null, and none of a list that holds a null.
func scoresOf(v any) []float32 {
	list, isList := v.([]any)
	switch {
	case v == nil, isList && holdsNull(list):
		return nil
	case !isList:
		return []float32{v.(float32)}
	}
	scores := make([]float32, len(list))
	for i, e := range list {
		scores[i] = e.(float32)
	}
	return scores
}
