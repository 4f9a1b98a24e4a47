//go:build !purego

package bucketize

import (
	"unsafe"

	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

var (
	narrowFloat32 = simd.Paths[func(t *Table, dst []int64, src []float32) int]{
		simd.Generic: narrowGeneric[float32], simd.NEON: narrowFloat32NEON}
	narrowFloat64 = simd.Paths[func(t *Table, dst []int64, src []float64) int]{
		simd.Generic: narrowGeneric[float64], simd.NEON: narrowFloat64NEON}
	narrowInt64 = simd.Paths[func(t *Table, dst, src []int64) int]{
		simd.Generic: narrowGeneric[int64], simd.NEON: narrowInt64NEON}
)

// block is how many values the kernels look up at a time.
const block = 4

// kernel is the kernel for sources of type V.
type kernel[V int64 | float32 | float64] func(dst *int64, src *V, n int, regions *uint32, cells *uint64,
	thresholds *uint32, low, high, shift uint32, more int) (done int)

func narrowFloat32NEON(t *Table, dst []int64, src []float32) int {
	return narrow(t, dst, src, bucketFloat32NEON)
}
func narrowFloat64NEON(t *Table, dst []int64, src []float64) int {
	return narrow(t, dst, src, bucketFloat64NEON)
}
func narrowInt64NEON(t *Table, dst, src []int64) int { return narrow(t, dst, src, bucketInt64NEON) }

// narrow leaves to the plain path the blocks with NaNs, before which the kernel stops, and the values behind the last
// block.
func narrow[V int64 | float32 | float64](t *Table, dst []int64, src []V, look kernel[V]) int {
	x := &t.narrow
	if x.steps > mostSteps {
		return narrowGeneric(t, dst, src)
	}
	for at := 0; at < len(src); {
		at += look(&dst[at], &src[at], len(src)-at, unsafe.SliceData(x.regions), &x.cells[0], &x.thresholds[0],
			x.low, x.high, uint32(x.shift), x.steps-1)
		end := min(at+block, len(src))
		if row := narrowGeneric(t, dst[at:end], src[at:end]); row >= 0 {
			return at + row
		}
		at = end
	}
	return -1
}
