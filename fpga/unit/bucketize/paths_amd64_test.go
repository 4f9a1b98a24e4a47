//go:build !purego

package bucketize

import (
	"math"
	"testing"
	"unsafe"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

// Only a NaN that is an error stops a kernel.
func TestKernelsDoAllButNaNs(t *testing.T) {
	t.Run("avx2", func(t *testing.T) { doesAllButNaNs(t, simd.AVX2, 999/block256*block256, block256, bucketFloat32x256) })
	t.Run("avx512", func(t *testing.T) { doesAllButNaNs(t, simd.AVX512, 999, block, bucketFloat32x512) })
}

// doesAllButNaNs fails unless the kernel does whole of 999 values, and stops before the block of a NaN where it must.
func doesAllButNaNs(t *testing.T, level simd.Level, whole, block int, kernel kernel[float32]) {
	const n = 999
	dst, src := make([]int64, n), make([]float32, n)
	for i := range src {
		src[i] = float32(value(i))
	}
	for name, b := range tables(t, NaNFirst) {
		x := &b.narrow
		if x.steps > mostSteps {
			continue
		}
		look := func(stop bool) int {
			return kernel(&dst[0], &src[0], n, unsafe.SliceData(x.regions), &x.cells[0], &x.thresholds[0],
				x.low, x.high, uint32(x.shift), x.steps-1, 0, stop)
		}
		t.Run(name, func(t *testing.T) {
			src[700] = float32(math.NaN())
			proving.Whole(t, level, whole, func() int { return look(false) })
			for i, v := range src {
				if v != v {
					src[i] = 1
				}
			}
			proving.Whole(t, level, whole, func() int { return look(true) })
			src[700] = float32(math.NaN())
			proving.Whole(t, level, 700/block*block, func() int { return look(true) })
		})
	}
}
