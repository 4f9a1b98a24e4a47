//go:build !purego

package bucketize

import (
	"unsafe"

	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

var (
	narrowFloat32 = simd.Paths[func(t *Table, dst []int64, src []float32) int]{narrowGeneric[float32],
		narrowGeneric[float32], narrowFloat32AVX512}
	narrowFloat64 = simd.Paths[func(t *Table, dst []int64, src []float64) int]{narrowGeneric[float64],
		narrowGeneric[float64], narrowFloat64AVX512}
	narrowInt64 = simd.Paths[func(t *Table, dst, src []int64) int]{narrowGeneric[int64], narrowGeneric[int64],
		narrowInt64AVX512}
)

// block is how many values the kernels look up at a time: a NaN that is an error stops them before its block, and the
// plain path finds its row.
const block = 16

func narrowFloat32AVX512(t *Table, dst []int64, src []float32) int {
	x := &t.narrow
	if x.steps > mostSteps || len(src) == 0 {
		return narrowGeneric(t, dst, src)
	}
	n := bucketFloat32(&dst[0], &src[0], len(src), unsafe.SliceData(x.regions), &x.cells[0], &x.thresholds[0],
		x.low, x.high, uint32(x.shift), x.steps-1, t.nanTo, t.nan == NaNFail)
	return behind(n, narrowGeneric(t, dst[n:], src[n:]))
}

func narrowFloat64AVX512(t *Table, dst []int64, src []float64) int {
	x := &t.narrow
	if x.steps > mostSteps || len(src) == 0 {
		return narrowGeneric(t, dst, src)
	}
	n := bucketFloat64(&dst[0], &src[0], len(src), unsafe.SliceData(x.regions), &x.cells[0], &x.thresholds[0],
		x.low, x.high, uint32(x.shift), x.steps-1, t.nanTo, t.nan == NaNFail)
	return behind(n, narrowGeneric(t, dst[n:], src[n:]))
}

func narrowInt64AVX512(t *Table, dst, src []int64) int {
	x := &t.narrow
	if x.steps > mostSteps || len(src) == 0 {
		return narrowGeneric(t, dst, src)
	}
	n := bucketInt64(&dst[0], &src[0], len(src), unsafe.SliceData(x.regions), &x.cells[0], &x.thresholds[0],
		x.low, x.high, uint32(x.shift), x.steps-1, t.nanTo, false)
	return behind(n, narrowGeneric(t, dst[n:], src[n:]))
}

// behind adds n to a row, but not to the -1 that stands for none.
func behind(n, row int) int {
	if row < 0 {
		return row
	}
	return n + row
}
