package computescore

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator.
func Answers() []rowvalue.Answer {
	a, b := []any{int64(1), int64(2), int64(2)}, []any{int64(2), int64(3)}
	of := func(f Function) Op { return Op{Function: f} }
	return []rowvalue.Answer{
		{Op: of(Cosine), Inputs: []any{int64(5), float32(3), int64(5), float32(-4)}, Want: float32(-1)},
		{Op: of(Cosine), Inputs: []any{int64(5), float32(3), int64(6), float32(-4)}, Want: float32(0)},
		{Op: of(HasOverlap), Inputs: []any{a, b}, Want: float32(1)},
		{Op: of(OverlapCount), Inputs: []any{a, a}, Want: float32(3)},
		{Op: of(MaxCount), Inputs: []any{a, b}, Want: float32(2)},
		{Op: of(Jaccard), Inputs: []any{a, b}, Want: float32(0.25)},
		{Op: of(Sum), Inputs: []any{a, b, []any{float32(0.5), float32(4)}}, Want: float32(0.5)},
		{Op: of(Min), Inputs: []any{a, a, []any{float32(3), float32(1), float32(2)}}, Want: float32(1)},
		{Op: of(Max), Inputs: []any{a, a, []any{float32(3), float32(1), float32(2)}}, Want: float32(3)},
		{Op: of(Sum), Inputs: []any{a, b, []any{float32(0.5)}}, Fails: true},
		{Op: of(Cosine), Inputs: []any{int64(1), float32(2), int64(1), float32(3)}, Want: float32(1)},
		{Op: of(Cosine), Inputs: []any{int64(1), float32(0), int64(1), float32(3)}, Fails: true},
		{Op: Op{Function: Cosine, ZeroNorm: ZeroNormZero},
			Inputs: []any{int64(1), float32(0), int64(1), float32(3)}, Want: float32(0)},
		{Op: of(OverlapCount), Inputs: []any{[]any{int64(2), nil}, b}, Want: float32(0)},
	}
}
