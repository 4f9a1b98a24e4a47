//go:build !amd64 || purego

package bucketize

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	narrowFloat32 = simd.Paths[func(t *Table, dst []int64, src []float32) int]{narrowGeneric[float32]}
	narrowFloat64 = simd.Paths[func(t *Table, dst []int64, src []float64) int]{narrowGeneric[float64]}
	narrowInt64   = simd.Paths[func(t *Table, dst, src []int64) int]{narrowGeneric[int64]}
)
