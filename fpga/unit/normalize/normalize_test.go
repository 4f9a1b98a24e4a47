package normalize_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/internal/affine"
	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/normalize"
)

func TestValues(t *testing.T) {
	nan, inf := math.Float32frombits(0x7fc00000), float32(math.Inf(1))
	for _, c := range []struct {
		x               float32
		mean, deviation float64
		want            float32
	}{
		{8, 10, 4, -0.5}, {10, 10, 4, 0}, {20, 10, 4, 2.5}, {1, 0, 3, 0x1.555556p-2},
		{5, 5, 0, 0}, {5, 4, 0, 1}, {16777216, -1, 0, 16777216}, // a tie, to even
		{nan, 1, 2, nan}, {inf, 1, 2, inf}, {-inf, 1, 0, -inf}, {math.Float32frombits(0xffc00001), 1, 0, nan},
		{math.MaxFloat32, 0, 0.5, inf}, {-math.MaxFloat32, 0, 0.5, -inf},
	} {
		transform, err := normalize.New(c.mean, c.deviation)
		require.NoError(t, err)
		got := []float32{c.x, 7}
		transform.Apply(got, got[:1])
		require.Equal(t, math.Float32bits(c.want), math.Float32bits(got[0]), "%+v gives %v", c, got[0])
		require.Equal(t, float32(7), got[1], "past the end")
		reference := normalize.Reference(c.x, c.mean, c.deviation)
		require.Equal(t, math.Float32bits(c.want), math.Float32bits(reference), "reference, %+v", c)
	}
}

func TestConstantsThatAreRefused(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range [][2]float64{
		{nan, 1}, {1, nan}, {inf, 1}, {1, inf}, {1, -1}, {0x1p-127, 1}, {1, 0x1p-127}, {0x1p128, 1}, {1, 0x1p128},
	} {
		_, err := normalize.New(c[0], c[1])
		require.ErrorIs(t, err, normalize.ErrConstants, "%v", c)
	}
	for _, c := range [][2]float64{{0x1p-126, 0x1p-126}, {-math.MaxFloat32, math.MaxFloat32}, {0, 0}} {
		_, err := normalize.New(c[0], c[1])
		require.NoError(t, err, "%v", c)
	}
}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		constant := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(-1000, 1000), rapid.Float64Range(0x1p-126, 0x1p-100),
			rapid.Float64Range(-math.MaxFloat32, math.MaxFloat32))
		first, second := constant.Draw(t, "first"), constant.Draw(t, "second")
		second = math.Abs(second)
		transform, err := normalize.New(first, second)
		if !affine.InRange(first) || !affine.InRange(second) {
			require.ErrorIs(t, err, normalize.ErrConstants)
			return
		}
		require.NoError(t, err)
		src := rapid.SliceOf(rapid.Float32()).Draw(t, "src")
		dst := make([]float32, len(src))
		transform.Apply(dst, src)
		for i, x := range src {
			require.Equal(t, math.Float32bits(normalize.Reference(x, first, second)), math.Float32bits(dst[i]), "%v", x)
		}
	})
}

func BenchmarkApply(b *testing.B) {
	transform, err := normalize.New(12.345, 67.89)
	require.NoError(b, err)
	proving.BenchmarkFloats(b, func(i int) float32 { return float32(i) * 0.37 }, transform.Apply)
}
