//go:build !amd64 || purego

package convert

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	int32ToInt64     = simd.Paths[func(dst []int64, src []byte)]{signedGeneric}
	uint32ToInt64    = simd.Paths[func(dst []int64, src []byte)]{unsignedGeneric}
	int64ToFloat32   = simd.Paths[func(dst []float32, src []int64)]{convertGeneric[float32, int64]}
	int64ToFloat64   = simd.Paths[func(dst []float64, src []int64)]{convertGeneric[float64, int64]}
	float32ToFloat64 = simd.Paths[func(dst []float64, src []float32)]{convertGeneric[float64, float32]}
	float64ToFloat32 = simd.Paths[func(dst []float32, src []float64)]{narrowGeneric}
)
