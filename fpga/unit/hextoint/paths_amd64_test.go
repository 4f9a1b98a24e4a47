//go:build !purego

package hextoint

import (
	"testing"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

func TestKernelsDoTokensOfEightDigits(t *testing.T) {
	const n = 1000
	offsets, data, valid := column(n, 0, nil)
	dst := make([]int64, n)
	for name, flags := range map[string]*byte{"no validity": nil, "all valid": &valid[0]} {
		t.Run("avx512, "+name, func(t *testing.T) {
			proving.Whole(t, simd.AVX512, n, func() int { return hex512(&dst[0], &offsets[0], &data[0], len(data), flags, n) })
		})
		t.Run("avx2, "+name, func(t *testing.T) {
			proving.Whole(t, simd.AVX2, n, func() int { return hex256(&dst[0], &offsets[0], &data[0], len(data), flags, n) })
		})
	}
}
