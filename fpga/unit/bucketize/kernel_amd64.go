//go:build !purego

package bucketize

import (
	"unsafe"

	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

var (
	narrowFloat32 = simd.Paths[func(t *Table, dst []int64, src []float32) int]{narrowGeneric[float32],
		narrowFloat32AVX2, narrowFloat32AVX512}
	narrowFloat64 = simd.Paths[func(t *Table, dst []int64, src []float64) int]{narrowGeneric[float64],
		narrowFloat64AVX2, narrowFloat64AVX512}
	narrowInt64 = simd.Paths[func(t *Table, dst, src []int64) int]{narrowGeneric[int64], narrowInt64AVX2,
		narrowInt64AVX512}
)

// block is how many values the kernels of AVX-512 look up at a time, and block256 those of AVX2: a NaN that is an error
// stops a kernel before its block, and the plain path finds its row.
const block, block256 = 16, 8

// kernel is the kernel for sources of type V.
type kernel[V int64 | float32 | float64] func(dst *int64, src *V, n int, regions *uint32, cells *uint64,
	thresholds *uint32, low, high, shift uint32, more int, nanTo int64, stop bool) (done int)

func narrowFloat32AVX512(t *Table, dst []int64, src []float32) int {
	return narrow(t, dst, src, bucketFloat32x512)
}
func narrowFloat64AVX512(t *Table, dst []int64, src []float64) int {
	return narrow(t, dst, src, bucketFloat64x512)
}
func narrowInt64AVX512(t *Table, dst, src []int64) int { return narrow(t, dst, src, bucketInt64x512) }
func narrowFloat32AVX2(t *Table, dst []int64, src []float32) int {
	return narrow(t, dst, src, bucketFloat32x256)
}
func narrowFloat64AVX2(t *Table, dst []int64, src []float64) int {
	return narrow(t, dst, src, bucketFloat64x256)
}
func narrowInt64AVX2(t *Table, dst, src []int64) int { return narrow(t, dst, src, bucketInt64x256) }

// narrow does what the kernel can and leaves the rest to the plain path.
func narrow[V int64 | float32 | float64](t *Table, dst []int64, src []V, look kernel[V]) int {
	x := &t.narrow
	if x.steps > mostSteps || len(src) == 0 {
		return narrowGeneric(t, dst, src)
	}
	n := look(&dst[0], &src[0], len(src), unsafe.SliceData(x.regions), &x.cells[0], &x.thresholds[0],
		x.low, x.high, uint32(x.shift), x.steps-1, t.nanTo, t.nan == NaNFail)
	if row := narrowGeneric(t, dst[n:], src[n:]); row >= 0 {
		return n + row
	}
	return -1
}
