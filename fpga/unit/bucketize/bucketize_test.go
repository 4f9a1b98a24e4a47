package bucketize_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/bucketize"
	"github.com/millrace/millrace/fpga/unit/internal/proving"
)

var (
	inf32 = float32(math.Inf(1))
	nan32 = float32(math.NaN())
	negZ  = float32(math.Copysign(0, -1))
)

func table(t require.TestingT, p bucketize.Params) *bucketize.Table {
	b, err := bucketize.New(p)
	require.NoError(t, err)
	return b
}

func TestSidesAndDuplicates(t *testing.T) { proving.EachLevel(t, sidesAndDuplicates) }

func sidesAndDuplicates(t *testing.T) {
	for _, c := range []struct {
		name        string
		borders     []float32
		v           float32
		left, right int64
	}{
		{"below", []float32{1, 2, 3}, 0.5, 0, 0},
		{"on the first", []float32{1, 2, 3}, 1, 0, 1},
		{"just above the first", []float32{1, 2, 3}, math.Nextafter32(1, 2), 1, 1},
		{"just below the first", []float32{1, 2, 3}, math.Nextafter32(1, 0), 0, 0},
		{"on the last", []float32{1, 2, 3}, 3, 2, 3},
		{"above", []float32{1, 2, 3}, 4, 3, 3},
		{"+Inf", []float32{1, 2, 3}, inf32, 3, 3},
		{"-Inf", []float32{1, 2, 3}, -inf32, 0, 0},
		{"one border, on it", []float32{1}, 1, 0, 1},
		{"one border, above", []float32{1}, 2, 1, 1},
		{"a pair, on it", []float32{1, 1}, 1, 1, 2},
		{"a pair, above", []float32{1, 1}, 1.5, 2, 2},
		{"a triple, on it", []float32{1, 1, 1}, 1, 1, 3},
		{"a triple among others, on it", []float32{0, 1, 1, 1, 2}, 1, 2, 4},
		{"a triple among others, above", []float32{0, 1, 1, 1, 2}, 1.5, 4, 4},
		{"a pair at the end, above", []float32{0, 1, 1}, 9, 3, 3},
		{"infinite borders, -Inf", []float32{-inf32, 0, inf32}, -inf32, 0, 1},
		{"infinite borders, +Inf", []float32{-inf32, 0, inf32}, inf32, 2, 3},
		{"infinite borders, largest", []float32{-inf32, 0, inf32}, math.MaxFloat32, 2, 2},
		{"pair of infinities", []float32{inf32, inf32}, inf32, 1, 2},
		{"-0 on a border of 0", []float32{0, 1}, negZ, 0, 1},
		{"0 on a border of -0", []float32{negZ, 1}, 0, 0, 1},
		{"-0 and 0 are equal borders", []float32{negZ, 0}, 0, 1, 2},
		{"smallest above 0", []float32{0}, math.SmallestNonzeroFloat32, 1, 1},
		{"smallest below 0", []float32{0}, -math.SmallestNonzeroFloat32, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			for side, want := range map[bucketize.Side]int64{bucketize.SideLeft: c.left, bucketize.SideRight: c.right} {
				reference, ok := bucketize.Reference(c.v, c.borders, side, bucketize.NaNTorchArrow)
				require.True(t, ok)
				require.Equal(t, want, reference, "reference, side %d", side)
				for _, compare := range []bucketize.Compare{bucketize.CompareFloat32, bucketize.CompareFloat64} {
					b := table(t, bucketize.Params{Borders: c.borders, Side: side, Compare: compare})
					got := []int64{-1}
					require.NoError(t, b.Float32(got, []float32{c.v}))
					require.Equal(t, want, got[0], "side %d, compare %d", side, compare)
					require.Equal(t, len(c.borders)+1, b.Buckets())
				}
			}
		})
	}
}

func TestNaN(t *testing.T) { proving.EachLevel(t, nans) }

func nans(t *testing.T) {
	one, three := []float32{5}, []float32{1, 2, 3}
	for _, c := range []struct {
		nan        bucketize.NaN
		one, three int64
	}{{bucketize.NaNTorchArrow, 0, 1}, {bucketize.NaNFirst, 0, 0}, {bucketize.NaNLast, 1, 3}} {
		for _, side := range []bucketize.Side{bucketize.SideLeft, bucketize.SideRight} {
			for _, compare := range []bucketize.Compare{bucketize.CompareFloat32, bucketize.CompareFloat64} {
				for borders, want := range map[*[]float32]int64{&one: c.one, &three: c.three} {
					b := table(t, bucketize.Params{Borders: *borders, NaN: c.nan, Side: side, Compare: compare})
					got := make([]int64, 3)
					negative := math.Float32frombits(0xffc00001)
					require.NoError(t, b.Float32(got, []float32{nan32, negative, 5}))
					require.Equal(t, []int64{want, want}, got[:2])
					require.NoError(t, b.Float64(got, []float64{math.NaN(), math.Float64frombits(1<<64 - 1), 5}))
					require.Equal(t, []int64{want, want}, got[:2])
					reference, ok := bucketize.Reference(nan32, *borders, side, c.nan)
					require.True(t, ok)
					require.Equal(t, want, reference)
				}
			}
		}
	}
}

func TestNaNIsAnErrorWhenAsked(t *testing.T) { proving.EachLevel(t, nanIsAnErrorWhenAsked) }

func nanIsAnErrorWhenAsked(t *testing.T) {
	_, ok := bucketize.Reference(nan32, []float32{1}, bucketize.SideLeft, bucketize.NaNFail)
	require.False(t, ok)
	for _, compare := range []bucketize.Compare{bucketize.CompareFloat32, bucketize.CompareFloat64} {
		b := table(t, bucketize.Params{Borders: []float32{1, 2}, NaN: bucketize.NaNFail, Compare: compare})
		got := make([]int64, 4)
		err := b.Float32(got, []float32{0, 3, nan32, nan32})
		var at *bucketize.NaNError
		require.ErrorAs(t, err, &at)
		require.Equal(t, 2, at.Row)
		require.ErrorContains(t, err, "row 2 is NaN")
		require.Equal(t, []int64{0, 2}, got[:2])
		require.NoError(t, b.Float32(got, []float32{0, inf32, -inf32, 1}))
		require.NoError(t, b.Int64(got, []int64{0, math.MaxInt64, math.MinInt64, 1}))
	}
}

// The type of the comparison decides the answer where a conversion rounds.
func TestCompareTypes(t *testing.T) { proving.EachLevel(t, compareTypes) }

func compareTypes(t *testing.T) {
	const limit = 1 << 24
	got := make([]int64, 1)
	for _, c := range []struct {
		name string
		p    bucketize.Params
		v    int64
		want int64
	}{
		{"as float32 2^24+1 is 2^24", bucketize.Params{Borders: []float32{limit}}, limit + 1, 0},
		{"as float64 it is not", bucketize.Params{Borders: []float32{limit}, Compare: bucketize.CompareFloat64},
			limit + 1, 1},
		{"an integer border rounds too", bucketize.Params{BordersI64: []int64{limit + 1}}, limit, 0},
		{"a float64 border rounds too", bucketize.Params{Borders64: []float64{limit + 1}}, limit, 0},
		{"2^53+1 as float64", bucketize.Params{BordersI64: []int64{1 << 53}, Compare: bucketize.CompareFloat64},
			1<<53 + 1, 0},
		{"2^53+1 as int64", bucketize.Params{BordersI64: []int64{1 << 53}, Compare: bucketize.CompareInt64}, 1<<53 + 1,
			1},
		{"largest int64 on itself", bucketize.Params{BordersI64: []int64{math.MaxInt64},
			Compare: bucketize.CompareInt64}, math.MaxInt64, 0},
		{"largest int64 twice", bucketize.Params{BordersI64: []int64{math.MaxInt64, math.MaxInt64},
			Compare: bucketize.CompareInt64}, math.MaxInt64, 1},
		{"below the largest, twice", bucketize.Params{BordersI64: []int64{math.MaxInt64, math.MaxInt64},
			Compare: bucketize.CompareInt64}, math.MaxInt64 - 1, 0},
		{"largest int64 on the right", bucketize.Params{BordersI64: []int64{math.MaxInt64},
			Compare: bucketize.CompareInt64, Side: bucketize.SideRight}, math.MaxInt64, 1},
		{"smallest int64", bucketize.Params{BordersI64: []int64{math.MinInt64, 0}, Compare: bucketize.CompareInt64},
			math.MinInt64, 0},
		{"above the smallest", bucketize.Params{BordersI64: []int64{math.MinInt64, 0}, Compare: bucketize.CompareInt64},
			math.MinInt64 + 1, 1},
	} {
		require.NoError(t, table(t, c.p).Int64(got, []int64{c.v}), c.name)
		require.Equal(t, c.want, got[0], c.name)
	}
	// 0.1 rounds up to float32, so that the float64 lies below the border until it is rounded too.
	b := table(t, bucketize.Params{Borders: []float32{0.1}, Side: bucketize.SideRight})
	require.NoError(t, b.Float64(got, []float64{0.1}))
	require.Equal(t, int64(1), got[0])
	b = table(t, bucketize.Params{Borders: []float32{0.1}, Side: bucketize.SideRight,
		Compare: bucketize.CompareFloat64})
	require.NoError(t, b.Float64(got, []float64{0.1}))
	require.Equal(t, int64(0), got[0])
	b = table(t, bucketize.Params{BordersI64: []int64{1}, Compare: bucketize.CompareInt64})
	require.ErrorIs(t, b.Float32(got, []float32{1}), bucketize.ErrCompare)
	require.ErrorIs(t, b.Float64(got, []float64{1}), bucketize.ErrCompare)
}

func TestParamsThatAreRefused(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		p    bucketize.Params
		want error
	}{
		"no borders":         {bucketize.Params{}, bucketize.ErrBorders},
		"decreasing float32": {bucketize.Params{Borders: []float32{1, 2, 1.5}}, bucketize.ErrBorders},
		"decreasing float64": {bucketize.Params{Borders64: []float64{2, 1}}, bucketize.ErrBorders},
		"decreasing int64": {bucketize.Params{BordersI64: []int64{2, 1}, Compare: bucketize.CompareInt64},
			bucketize.ErrBorders},
		"NaN first": {bucketize.Params{Borders: []float32{nan32, 1}}, bucketize.ErrBorders},
		"NaN last":  {bucketize.Params{Borders64: []float64{1, nan}}, bucketize.ErrBorders},
		"two kinds": {bucketize.Params{Borders: []float32{1}, BordersI64: []int64{1}}, bucketize.ErrParams},
		"floats as int64": {bucketize.Params{Borders: []float32{1}, Compare: bucketize.CompareInt64},
			bucketize.ErrParams},
		"unknown side":        {bucketize.Params{Borders: []float32{1}, Side: 2}, bucketize.ErrParams},
		"unknown nan":         {bucketize.Params{Borders: []float32{1}, NaN: 4}, bucketize.ErrParams},
		"unknown compare":     {bucketize.Params{Borders: []float32{1}, Compare: 3}, bucketize.ErrParams},
		"decreasing by a bit": {bucketize.Params{Borders: []float32{math.Nextafter32(1, 2), 1}}, bucketize.ErrBorders},
	} {
		_, err := bucketize.New(c.p)
		require.ErrorIs(t, err, c.want, name)
	}
}

func TestTheTableKeepsNothingOfTheBorders(t *testing.T) {
	borders := []int64{1, 5, 9}
	b := table(t, bucketize.Params{BordersI64: borders, Compare: bucketize.CompareInt64, Side: bucketize.SideRight})
	clear(borders)
	got := make([]int64, 1)
	require.NoError(t, b.Int64(got, []int64{5}))
	require.Equal(t, int64(2), got[0])
}

// shapes are borders of the kinds that pipelines have, and of kinds that a table finds hard.
func shapes(n int) map[string][]float64 {
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	make1 := func(f func(i int) float64) []float64 {
		b := make([]float64, n)
		for i := range b {
			b[i] = f(i)
		}
		slices.Sort(b)
		return b
	}
	return map[string][]float64{
		"linear":  make1(func(i int) float64 { return float64(i) * 0.25 }),
		"centred": make1(func(i int) float64 { return float64(i-n/2) * 3 }),
		"log": make1(func(i int) float64 {
			return math.Exp(math.Log(1e6) * float64(i) / float64(max(n-1,
				1)))
		}),
		"uniform":    make1(func(int) float64 { return float64(rng.Float64()*2000) - 1000 }),
		"normal":     make1(func(int) float64 { return rng.NormFloat64() }),
		"duplicates": make1(func(int) float64 { return float64(rng.IntN(n/3 + 1)) }),
		"all equal":  make1(func(int) float64 { return 7 }),
		"neighbours": make1(func(i int) float64 { return float64(math.Float32frombits(0x3f800000 + uint32(i))) }),
		"two crowds": make1(func(i int) float64 { return max(float64(i%2)*1e30, float64(i)*1e-30) }),
		"every range": make1(func(i int) float64 {
			return float64(math.Float32frombits(uint32(i) * 2139095040 / uint32(n)))
		}),
	}
}

func TestKernelEqualsReferenceOnShapes(t *testing.T) {
	proving.EachLevel(t, kernelEqualsReferenceOnShapes)
}

func kernelEqualsReferenceOnShapes(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for _, n := range []int{1, 2, 3, 17, 1024, 4096} {
		for name, wide := range shapes(n) {
			narrow := make([]float32, n)
			whole := make([]int64, n)
			for i, b := range wide {
				narrow[i] = float32(b)
				whole[i] = int64(max(min(b, 1e18), -1e18))
			}
			values := []float32{0, negZ, inf32, -inf32, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32,
				nan32}
			for range min(400, 400_000/n) {
				v := narrow[rng.IntN(n)]
				values = append(values, v, math.Nextafter32(v, inf32), math.Nextafter32(v, -inf32),
					float32(rng.NormFloat64())*v)
			}
			for side := bucketize.SideLeft; side <= bucketize.SideRight; side++ {
				t.Run(fmt.Sprintf("%s/%d/side %d", name, n, side), func(t *testing.T) {
					equal32(t, narrow, side, values)
					equal64(t, wide, side, values)
					equalInt(t, whole, side, values)
				})
			}
		}
	}
}

func equal32(t require.TestingT, borders []float32, side bucketize.Side, values []float32) {
	b := table(t, bucketize.Params{Borders: borders, Side: side})
	got := make([]int64, len(values))
	require.NoError(t, b.Float32(got, values))
	for i, v := range values {
		if want, _ := bucketize.Reference(v, borders, side, bucketize.NaNTorchArrow); want != got[i] {
			require.Equal(t, want, got[i], "float32 %v (%#x)", v, math.Float32bits(v))
		}
	}
}

func equal64(t require.TestingT, borders []float64, side bucketize.Side, values []float32) {
	b := table(t, bucketize.Params{Borders64: borders, Side: side, Compare: bucketize.CompareFloat64})
	var wide []float64
	for _, v := range values {
		w := float64(v)
		wide = append(wide, w, math.Nextafter(w, math.Inf(1)), math.Nextafter(w, math.Inf(-1)))
	}
	got := make([]int64, len(wide))
	require.NoError(t, b.Float64(got, wide))
	for i, v := range wide {
		if want, _ := bucketize.Reference(v, borders, side, bucketize.NaNTorchArrow); want != got[i] {
			require.Equal(t, want, got[i], "float64 %v (%#x)", v, math.Float64bits(v))
		}
	}
}

func equalInt(t require.TestingT, borders []int64, side bucketize.Side, values []float32) {
	b := table(t, bucketize.Params{BordersI64: borders, Side: side, Compare: bucketize.CompareInt64})
	whole := []int64{math.MinInt64, math.MaxInt64}
	for _, v := range values {
		if v == v {
			w := int64(max(min(v, 1e18), -1e18))
			whole = append(whole, w, w+1, w-1)
		}
	}
	got := make([]int64, len(whole))
	require.NoError(t, b.Int64(got, whole))
	for i, v := range whole {
		if want, _ := bucketize.Reference(v, borders, side, bucketize.NaNTorchArrow); want != got[i] {
			require.Equal(t, want, got[i], "int64 %v", v)
		}
	}
	copied := slices.Clone(whole)
	require.NoError(t, b.Int64(copied, copied))
	require.Equal(t, got, copied, "in place")
}

func TestMoreBordersThanSixteenBitsCount(t *testing.T) {
	proving.EachLevel(t, moreBordersThanSixteenBitsCount)
}

func moreBordersThanSixteenBitsCount(t *testing.T) {
	borders := make([]float32, 70000)
	whole := make([]int64, len(borders))
	for i := range borders {
		borders[i] = float32(i) * 2
		whole[i] = int64(i) * 2
	}
	values := []float32{-1, 0, 1, 131069, 131070, 131071, 131072, 139997, 139998, 139999, 1e9}
	equal32(t, borders, bucketize.SideLeft, values)
	equalInt(t, whole, bucketize.SideRight, values)
	b := table(t, bucketize.Params{Borders: borders, Compare: bucketize.CompareFloat64})
	got := make([]int64, 1)
	require.NoError(t, b.Float64(got, []float64{139998.5}))
	require.Equal(t, int64(70000), got[0])
}

func TestKernelEqualsReference(t *testing.T) { proving.EachLevel(t, kernelEqualsReference) }

func kernelEqualsReference(t *testing.T) {
	bits := rapid.OneOf(
		rapid.Map(rapid.Uint32(), math.Float32frombits),
		rapid.Float32Range(-4, 4),
		rapid.Map(rapid.IntRange(-6, 6), func(i int) float32 { return float32(i) / 2 }),
		rapid.SampledFrom([]float32{0, negZ, inf32, -inf32, nan32, 16777216, 16777218}),
	)
	rapid.Check(t, func(t *rapid.T) {
		borders := rapid.SliceOfN(bits.Filter(func(v float32) bool { return v == v }), 1, 40).Draw(t, "borders")
		slices.Sort(borders)
		side := rapid.SampledFrom([]bucketize.Side{bucketize.SideLeft, bucketize.SideRight}).Draw(t, "side")
		values := append(rapid.SliceOfN(bits, 0, 40).Draw(t, "values"), borders...)
		equal32(t, borders, side, values)
		wide := make([]float64, len(borders))
		for i, b := range borders {
			wide[i] = float64(b)
		}
		equal64(t, wide, side, values)
		whole := rapid.SliceOfN(rapid.Int64(), 1, 40).Draw(t, "whole")
		slices.Sort(whole)
		equalInt(t, whole, side, values)
		// An integer among float32 borders is converted first.
		ids := rapid.SliceOf(rapid.Int64()).Draw(t, "ids")
		got := make([]int64, len(ids))
		require.NoError(t, table(t, bucketize.Params{Borders: borders, Side: side}).Int64(got, ids))
		for i, id := range ids {
			want, _ := bucketize.Reference(float32(id), borders, side, bucketize.NaNTorchArrow)
			require.Equal(t, want, got[i], "integer %d", id)
		}
	})
}
