//go:build !purego

package convert

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	int64ToFloat32   = simd.Paths[func(dst []float32, src []int64)]{convertGeneric[float32, int64], convertGeneric[float32, int64], int64ToFloat32AVX512}
	int64ToFloat64   = simd.Paths[func(dst []float64, src []int64)]{convertGeneric[float64, int64], int64ToFloat64AVX2, int64ToFloat64AVX512}
	float32ToFloat64 = simd.Paths[func(dst []float64, src []float32)]{convertGeneric[float64, float32], float32ToFloat64AVX2, float32ToFloat64AVX512}
	float64ToFloat32 = simd.Paths[func(dst []float32, src []float64)]{narrowGeneric, float64ToFloat32AVX2, float64ToFloat32AVX512}
)

func int64ToFloat32AVX512(dst []float32, src []int64) {
	if len(src) > 0 {
		int64ToFloat32x512(&dst[0], &src[0], len(src))
	}
}

func int64ToFloat64AVX512(dst []float64, src []int64) {
	if len(src) > 0 {
		int64ToFloat64x512(&dst[0], &src[0], len(src))
	}
}

func int64ToFloat64AVX2(dst []float64, src []int64) {
	whole := len(src) &^ 3
	if whole > 0 {
		int64ToFloat64x256(&dst[0], &src[0], whole)
	}
	convertGeneric(dst[whole:], src[whole:])
}

func float32ToFloat64AVX512(dst []float64, src []float32) {
	if len(src) > 0 {
		float32ToFloat64x512(&dst[0], &src[0], len(src))
	}
}

func float32ToFloat64AVX2(dst []float64, src []float32) {
	whole := len(src) &^ 3
	if whole > 0 {
		float32ToFloat64x256(&dst[0], &src[0], whole)
	}
	convertGeneric(dst[whole:], src[whole:])
}

func float64ToFloat32AVX512(dst []float32, src []float64) {
	if len(src) > 0 {
		float64ToFloat32x512(&dst[0], &src[0], len(src))
	}
}

func float64ToFloat32AVX2(dst []float32, src []float64) {
	whole := len(src) &^ 3
	if whole > 0 {
		float64ToFloat32x256(&dst[0], &src[0], whole)
	}
	narrowGeneric(dst[whole:], src[whole:])
}
