//go:build !purego

package logn

import (
	"testing"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

// Ordinary values, none of which Ziv's test stops at, as their results being right with no way back shows.
func TestKernelsDoOrdinaryValues(t *testing.T) {
	const n = 1000
	src, dst, want := make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range src {
		src[i] = float32(i)
	}
	logGeneric(want, src, 1)
	t.Run("avx512", func(t *testing.T) {
		proving.Whole(t, simd.AVX512, n, func() int { return log512(&dst[0], &src[0], n, 1, &vectorTable) })
		same(t, want, dst, src, 1)
	})
	t.Run("avx512, special values", func(t *testing.T) {
		proving.Whole(t, simd.AVX512, n, func() int { return log512(&dst[0], &src[0], n, -500, &vectorTable) })
	})
	t.Run("avx2", func(t *testing.T) {
		proving.Whole(t, simd.AVX2, n, func() int { return log256(&dst[0], &src[0], n, 1) })
		same(t, want, dst, src, 1)
	})
}
