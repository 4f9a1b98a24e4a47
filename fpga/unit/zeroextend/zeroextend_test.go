package zeroextend_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/zeroextend"
)

func TestInt64(t *testing.T) {
	v := []int64{0, 1, -1, math.MaxInt32, math.MinInt32, math.MaxUint32, math.MaxUint32 + 1, math.MinInt64,
		math.MaxInt64}
	zeroextend.Int64(v)
	require.Equal(t, []int64{0, 1, 4294967295, 2147483647, 2147483648, 4294967295, 0, 0, 4294967295}, v)
}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOf(rapid.Int64()).Draw(t, "v")
		got := append([]int64(nil), v...)
		zeroextend.Int64(got)
		for i, x := range v {
			require.Equal(t, zeroextend.Reference(x), got[i], "%d", x)
		}
	})
}

func BenchmarkInt64(b *testing.B) {
	v := make([]int64, 2048)
	proving.BenchmarkEachLevel(b, len(v), func() { zeroextend.Int64(v) })
}

func BenchmarkNarrow(b *testing.B) {
	v, dst := make([]int64, 2048), make([]byte, 4*2048)
	proving.BenchmarkEachLevel(b, len(v), func() { zeroextend.Narrow(dst, v) })
}
