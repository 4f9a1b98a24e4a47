// Package reference computes compute_score by its definition.
package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/computescore"
)

// Unit is the operator's unit.
const Unit = program.UnitComputeScore

// functions has the unit's numbers of the functions.
var functions = map[program.ScoreFunction]unit.Function{
	program.ScoreHasOverlap: unit.HasIDOverlap, program.ScoreOverlapCount: unit.IDOverlapCount,
	program.ScoreMaxCount: unit.MaxCount, program.ScoreJaccard: unit.JaccardSimilarity,
	program.ScoreCosine: unit.CosineSimilarity, program.ScoreSum: unit.ScoreSum,
	program.ScoreMin: unit.ScoreMin, program.ScoreMax: unit.ScoreMax,
}

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(program.ComputeScore)
	params := unit.Params{Function: functions[o.Function], ZeroNorm: o.ZeroNorm == program.ZeroNormZero}
	return func(inputs []any) (any, error) {
		var scores, matchingScores []float32
		ids, rest := rowvalue.IDs(inputs[0]), inputs[1:]
		if o.Function == program.ScoreCosine {
			scores, rest = rowvalue.Scores(rest[0]), rest[1:]
		}
		matching := rowvalue.IDs(rest[0])
		if len(rest) > 1 {
			matchingScores = rowvalue.Scores(rest[1])
		}
		score, err := unit.Reference(ids, scores, matching, matchingScores, params)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", rowvalue.ErrData, err)
		}
		return score, nil
	}, nil
}
