package minmax_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/internal/affine"
	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/minmax"
)

func TestValues(t *testing.T) {
	nan, inf := math.Float32frombits(0x7fc00000), float32(math.Inf(1))
	for _, c := range []struct {
		x         float32
		low, high float64
		want      float32
	}{
		{-3, -3, 5, 0}, {1, -3, 5, 0.5}, {5, -3, 5, 1}, {9, -3, 5, 1.5}, {-11, -3, 5, -1}, {1, 0, 3, 0x1.555556p-2},
		{5, 5, 5, 0.5}, {7, 5, 5, 0.5}, {-7, 5, 5, 0.5}, {0, 5, 5, nan}, {inf, 5, 5, nan}, {-inf, 0, 0, nan}, {nan, 5, 5,
			nan},
		{nan, 1, 2, nan}, {inf, 1, 2, inf}, {-inf, 1, 2, -inf}, {math.MaxFloat32, 0, 0.5, inf},
	} {
		transform, err := minmax.New(c.low, c.high)
		require.NoError(t, err)
		got := []float32{c.x, 7}
		transform.Apply(got, got[:1])
		require.Equal(t, math.Float32bits(c.want), math.Float32bits(got[0]), "%+v gives %v", c, got[0])
		require.Equal(t, float32(7), got[1], "past the end")
		reference := minmax.Reference(c.x, c.low, c.high)
		require.Equal(t, math.Float32bits(c.want), math.Float32bits(reference), "reference, %+v", c)
	}
}

func TestConstantsThatAreRefused(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range [][2]float64{
		{nan, 1}, {1, nan}, {-inf, 1}, {1, inf}, {1, 0}, {0x1p-127, 1}, {0, 0x1p-127}, {-0x1p128, 1}, {1, 0x1p128},
	} {
		_, err := minmax.New(c[0], c[1])
		require.ErrorIs(t, err, minmax.ErrBounds, "%v", c)
	}
	for _, c := range [][2]float64{{0x1p-126, 0x1p-126}, {-math.MaxFloat32, math.MaxFloat32}, {0, 0}} {
		_, err := minmax.New(c[0], c[1])
		require.NoError(t, err, "%v", c)
	}
}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		constant := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(-1000, 1000), rapid.Float64Range(0x1p-126, 0x1p-100),
			rapid.Float64Range(-math.MaxFloat32, math.MaxFloat32))
		first, second := constant.Draw(t, "first"), constant.Draw(t, "second")
		first, second = min(first, second), max(first, second)
		transform, err := minmax.New(first, second)
		if !affine.InRange(first) || !affine.InRange(second) {
			require.ErrorIs(t, err, minmax.ErrBounds)
			return
		}
		require.NoError(t, err)
		src := rapid.SliceOf(rapid.Float32()).Draw(t, "src")
		dst := make([]float32, len(src))
		transform.Apply(dst, src)
		for i, x := range src {
			require.Equal(t, math.Float32bits(minmax.Reference(x, first, second)), math.Float32bits(dst[i]), "%v", x)
		}
	})
}

func BenchmarkApply(b *testing.B) {
	transform, err := minmax.New(12.345, 67.89)
	require.NoError(b, err)
	proving.BenchmarkFloats(b, func(i int) float32 { return float32(i) * 0.37 }, transform.Apply)
}
