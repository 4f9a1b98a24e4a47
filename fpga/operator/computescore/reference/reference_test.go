package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	a, b := []any{int64(1), int64(2), int64(2)}, []any{int64(2), int64(3)}
	of := func(f program.ScoreFunction) program.ComputeScore { return program.ComputeScore{Function: f} }
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: of(program.ScoreHasOverlap), Inputs: []any{a, b}, Want: float32(1)},
		{Op: of(program.ScoreOverlapCount), Inputs: []any{a, a}, Want: float32(3)},
		{Op: of(program.ScoreMaxCount), Inputs: []any{a, b}, Want: float32(2)},
		{Op: of(program.ScoreJaccard), Inputs: []any{a, b}, Want: float32(0.25)},
		{Op: of(program.ScoreSum), Inputs: []any{a, b, []any{float32(0.5), float32(4)}}, Want: float32(0.5)},
		{Op: of(program.ScoreMin), Inputs: []any{a, a, []any{float32(3), float32(1), float32(2)}}, Want: float32(1)},
		{Op: of(program.ScoreMax), Inputs: []any{a, a, []any{float32(3), float32(1), float32(2)}}, Want: float32(3)},
		{Op: of(program.ScoreSum), Inputs: []any{a, b, []any{float32(0.5)}}, Fails: true},
		{Op: of(program.ScoreCosine), Inputs: []any{int64(1), float32(2), int64(1), float32(3)}, Want: float32(1)},
		{Op: of(program.ScoreCosine), Inputs: []any{int64(1), float32(0), int64(1), float32(3)}, Fails: true},
		{Op: program.ComputeScore{Function: program.ScoreCosine, ZeroNorm: program.ZeroNormZero},
			Inputs: []any{int64(1), float32(0), int64(1), float32(3)}, Want: float32(0)},
		{Op: of(program.ScoreOverlapCount), Inputs: []any{[]any{int64(2), nil}, b}, Want: float32(0)},
	})
}
