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
			proving.Whole(t, simd.AVX512, n, func() int {
				return hex512(&dst[0], &offsets[0], &data[0], len(data),
					flags, n)
			})
		})
		t.Run("avx2, "+name, func(t *testing.T) {
			proving.Whole(t, simd.AVX2, n, func() int {
				return hex256(&dst[0], &offsets[0], &data[0], len(data), flags,
					n)
			})
		})
	}
}

// needVBMI lets the test use all that the machine has, and ends it where that does not suffice.
func needVBMI(t *testing.T) {
	t.Cleanup(simd.Force(simd.Detected()))
	if !simd.VBMI() {
		t.Skipf("this machine offers %v, or no permutations of bytes", simd.Detected())
	}
}

func TestKernelDoesTokensOfAnyLength(t *testing.T) {
	needVBMI(t)
	const n = 1000
	offsets, data, valid := column(n, 3, func(i int) string { return "0fF9abCD"[:i/3%9] })
	dst := make([]int64, n)
	proving.Whole(t, simd.AVX512, n, func() int {
		return hexAny512(&dst[0], &offsets[0], &data[0], len(data), &valid[0],
			n)
	})
	offsets, data, _ = column(n, 2, func(i int) string { return "0fF9abCD"[:1+i%8] })
	proving.Whole(t, simd.AVX512, n, func() int { return hexAny512(&dst[0], &offsets[0], &data[0], len(data), nil, n) })
}
