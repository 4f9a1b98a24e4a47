package positivemodulus_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/positivemodulus"
)

func TestMod(t *testing.T) {
	for _, c := range []struct{ x, m, want int64 }{
		{7, 5, 2}, {-7, 5, 3}, {0, 5, 0}, {5, 5, 0}, {-5, 5, 0}, {4, 5, 4}, {-1, 5, 4},
		{math.MinInt64, 1, 0}, {math.MaxInt64, 1, 0}, {-1, 1, 0},
		{math.MinInt64, 2, 0}, {math.MinInt64, 3, 1}, {math.MaxInt64, math.MaxInt64, 0},
		{math.MinInt64, math.MaxInt64, math.MaxInt64 - 1}, {-1, math.MaxInt64, math.MaxInt64 - 1},
		{4294967295, 5000, 2295}, {3735928559, 8192, 7919},
	} {
		m, err := positivemodulus.New(c.m)
		require.NoError(t, err)
		got := []int64{c.x}
		m.Mod(got, got)
		require.Equal(t, c.want, got[0], "%d mod %d", c.x, c.m)
		require.Equal(t, c.want, positivemodulus.Reference(c.x, c.m), "reference, %d mod %d", c.x, c.m)
	}
}

func TestModulusMustBePositive(t *testing.T) {
	for _, m := range []int64{0, -1, math.MinInt64} {
		_, err := positivemodulus.New(m)
		require.ErrorIs(t, err, positivemodulus.ErrModulus)
	}
}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		modulus := rapid.Int64Range(1, math.MaxInt64).Draw(t, "m") >> rapid.IntRange(0, 62).Draw(t, "width")
		modulus = max(modulus, 1)
		src := rapid.SliceOf(rapid.Int64()).Draw(t, "src")
		m, err := positivemodulus.New(modulus)
		require.NoError(t, err)
		dst := make([]int64, len(src)+1)
		dst[len(src)] = -7
		m.Mod(dst, src)
		for i, x := range src {
			require.Equal(t, positivemodulus.Reference(x, modulus), dst[i], "%d mod %d", x, modulus)
		}
		require.Equal(t, int64(-7), dst[len(src)], "past the end")
	})
}

func BenchmarkMod(b *testing.B) {
	v := make([]int64, 2048)
	for i := range v {
		v[i] = int64(uint64(i) * 0x9e3779b97f4a7c15)
	}
	dst := make([]int64, len(v))
	for name, limit := range map[string]int64{"power of two": 8192, "small": 8191, "rm": 500000, "any": 1<<62 + 1} {
		m, _ := positivemodulus.New(limit)
		b.Run(name, func(b *testing.B) { proving.BenchmarkEachLevel(b, len(v), func() { m.Mod(dst, v) }) })
	}
}
