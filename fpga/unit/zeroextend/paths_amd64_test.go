//go:build !purego

package zeroextend

import (
	"testing"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

func TestKernelsDoNumbersThatFit(t *testing.T) {
	const n = 999
	src, dst := make([]int64, n), make([]byte, 4*n)
	for i := range src {
		src[i] = int64(int32(number(i)))
	}
	t.Run("avx512", func(t *testing.T) {
		proving.Whole(t, simd.AVX512, n, func() int { return narrow512(&dst[0], &src[0], n) })
	})
	t.Run("avx2", func(t *testing.T) {
		proving.Whole(t, simd.AVX2, n&^7, func() int { return narrow256(&dst[0], &src[0], n) })
	})
}
