package clamp_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/clamp"
	"github.com/millrace/millrace/fpga/unit/internal/proving"
)

func TestInt64(t *testing.T) {
	v := []int64{math.MinInt64, -1, 0, 1, 19, 20, 21, math.MaxInt64}
	require.NoError(t, clamp.Int64(v, 0, 20))
	require.Equal(t, []int64{0, 0, 0, 1, 19, 20, 20, 20}, v)
	require.NoError(t, clamp.Int64(v, 7, 7))
	require.Equal(t, []int64{7, 7, 7, 7, 7, 7, 7, 7}, v)
}

func TestFloatsKeepBits(t *testing.T) {
	for _, in := range []uint32{0x7fc00000, 0xffc00001, 0x7f800001, 0x80000000, 0, 1, 0x3f800000} {
		v := []float32{math.Float32frombits(in)}
		require.NoError(t, clamp.Float32(v, 0, 1))
		require.Equal(t, in, math.Float32bits(v[0]), "%08x", in)
	}
	v := []float32{float32(math.Inf(-1)), -1, -1e-45, float32(math.Inf(1)), math.Nextafter32(1, 2)}
	require.NoError(t, clamp.Float32(v, 0, 1))
	require.Equal(t, []float32{0, 0, 0, 1, 1}, v)
	w := []float64{math.Inf(-1), -0.5, 0.5, math.Inf(1)}
	require.NoError(t, clamp.Float64(w, 0, math.Inf(1)))
	require.Equal(t, []float64{0, 0, 0.5, math.Inf(1)}, w)
}

func TestBoundsThatAreRefused(t *testing.T) {
	v, f, d := []int64{5}, []float32{5}, []float64{5}
	require.ErrorIs(t, clamp.Int64(v, 1, 0), clamp.ErrBounds)
	require.ErrorIs(t, clamp.Float32(f, 1, 0), clamp.ErrBounds)
	require.ErrorIs(t, clamp.Float32(f, float32(math.NaN()), 0), clamp.ErrBounds)
	require.ErrorIs(t, clamp.Float64(d, 0, math.NaN()), clamp.ErrBounds)
	require.Equal(t, []int64{5}, v)
	require.Equal(t, []float32{5}, f)
	require.Equal(t, []float64{5}, d)
}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Int64Range(-5, 5)
		lo := small.Draw(t, "lo")
		hi := max(lo, small.Draw(t, "hi"))
		v := rapid.SliceOf(rapid.OneOf(small, rapid.Int64())).Draw(t, "v")
		got := append([]int64(nil), v...)
		require.NoError(t, clamp.Int64(got, lo, hi))
		for i, x := range v {
			require.Equal(t, clamp.Reference(x, lo, hi), got[i])
		}
		f := rapid.SliceOf(rapid.OneOf(rapid.Float32(), rapid.Float32Range(-6, 6))).Draw(t, "f")
		narrow, wide := append([]float32(nil), f...), make([]float64, len(f))
		for i, x := range f {
			wide[i] = float64(x)
		}
		require.NoError(t, clamp.Float32(narrow, float32(lo), float32(hi)))
		require.NoError(t, clamp.Float64(wide, float64(lo), float64(hi)))
		for i, x := range f {
			want := clamp.Reference(x, float32(lo), float32(hi))
			require.Equal(t, math.Float32bits(want), math.Float32bits(narrow[i]))
			require.Equal(t, math.Float64bits(float64(want)), math.Float64bits(wide[i]))
		}
	})
}

func BenchmarkClamp(b *testing.B) {
	v, f := make([]int64, 2048), make([]float32, 2048)
	b.Run("int64", func(b *testing.B) {
		proving.BenchmarkEachLevel(b, len(v), func() {
			for i := range 64 { // some are below, so that branches do not know
				v[i*29%2048] = -1
			}
			_ = clamp.Int64(v, 0, math.MaxInt64)
		})
	})
	b.Run("float32", func(b *testing.B) {
		proving.BenchmarkEachLevel(b, len(f), func() {
			for i := range 64 {
				f[i*29%2048] = -1
			}
			_ = clamp.Float32(f, 0, math.MaxFloat32)
		})
	})
}
