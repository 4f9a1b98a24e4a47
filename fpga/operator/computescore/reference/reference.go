// Package reference computes compute_score by its definition.
package reference

import (
	"fmt"

	"github.com/millrace/millrace/fpga/operator/computescore"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/computescore"
)

// Unit is the operator's unit.
const Unit = computescore.Unit

// functions has the unit's numbers of the functions.
var functions = map[computescore.Function]unit.Function{
	computescore.HasOverlap: unit.HasIDOverlap, computescore.OverlapCount: unit.IDOverlapCount,
	computescore.MaxCount: unit.MaxCount, computescore.Jaccard: unit.JaccardSimilarity,
	computescore.Cosine: unit.CosineSimilarity, computescore.Sum: unit.ScoreSum,
	computescore.Min: unit.ScoreMin, computescore.Max: unit.ScoreMax,
}

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, _ *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(computescore.Op)
	params := unit.Params{Function: functions[o.Function], ZeroNorm: o.ZeroNorm == computescore.ZeroNormZero}
	return func(inputs []any) (any, error) {
		var scores, matchingScores []float32
		ids, rest := rowvalue.IDs(inputs[0]), inputs[1:]
		if o.Function == computescore.Cosine {
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
