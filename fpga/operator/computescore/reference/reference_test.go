package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/computescore"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	a, b := []any{int64(1), int64(2), int64(2)}, []any{int64(2), int64(3)}
	of := func(f computescore.Function) computescore.Op { return computescore.Op{Function: f} }
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: of(computescore.HasOverlap), Inputs: []any{a, b}, Want: float32(1)},
		{Op: of(computescore.OverlapCount), Inputs: []any{a, a}, Want: float32(3)},
		{Op: of(computescore.MaxCount), Inputs: []any{a, b}, Want: float32(2)},
		{Op: of(computescore.Jaccard), Inputs: []any{a, b}, Want: float32(0.25)},
		{Op: of(computescore.Sum), Inputs: []any{a, b, []any{float32(0.5), float32(4)}}, Want: float32(0.5)},
		{Op: of(computescore.Min), Inputs: []any{a, a, []any{float32(3), float32(1), float32(2)}}, Want: float32(1)},
		{Op: of(computescore.Max), Inputs: []any{a, a, []any{float32(3), float32(1), float32(2)}}, Want: float32(3)},
		{Op: of(computescore.Sum), Inputs: []any{a, b, []any{float32(0.5)}}, Fails: true},
		{Op: of(computescore.Cosine), Inputs: []any{int64(1), float32(2), int64(1), float32(3)}, Want: float32(1)},
		{Op: of(computescore.Cosine), Inputs: []any{int64(1), float32(0), int64(1), float32(3)}, Fails: true},
		{Op: computescore.Op{Function: computescore.Cosine, ZeroNorm: computescore.ZeroNormZero},
			Inputs: []any{int64(1), float32(0), int64(1), float32(3)}, Want: float32(0)},
		{Op: of(computescore.OverlapCount), Inputs: []any{[]any{int64(2), nil}, b}, Want: float32(0)},
	})
}
