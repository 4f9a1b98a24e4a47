//go:build !purego

package convert

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	int32ToInt64   = simd.Paths[func(dst []int64, src []byte)]{signedGeneric, signedAVX2, signedAVX512}
	uint32ToInt64  = simd.Paths[func(dst []int64, src []byte)]{unsignedGeneric, unsignedAVX2, unsignedAVX512}
	int64ToFloat32 = simd.Paths[func(dst []float32, src []int64)]{convertGeneric[float32, int64],
		int64ToFloat32AVX2, int64ToFloat32AVX512}
	int64ToFloat64 = simd.Paths[func(dst []float64, src []int64)]{convertGeneric[float64, int64], int64ToFloat64AVX2,
		int64ToFloat64AVX512}
	float32ToFloat64 = simd.Paths[func(dst []float64, src []float32)]{convertGeneric[float64, float32],
		float32ToFloat64AVX2, float32ToFloat64AVX512}
	float64ToFloat32 = simd.Paths[func(dst []float32, src []float64)]{narrowGeneric, float64ToFloat32AVX2,
		float64ToFloat32AVX512}
)

// The kernels of what widens do whole vectors.

func signedAVX512(dst []int64, src []byte) {
	whole := len(dst) &^ 7
	if whole > 0 {
		int32ToInt64x512(&dst[0], &src[0], whole)
	}
	signedGeneric(dst[whole:], src[4*whole:])
}

func signedAVX2(dst []int64, src []byte) {
	whole := len(dst) &^ 3
	if whole > 0 {
		int32ToInt64x256(&dst[0], &src[0], whole)
	}
	signedGeneric(dst[whole:], src[4*whole:])
}

func unsignedAVX512(dst []int64, src []byte) {
	whole := len(dst) &^ 7
	if whole > 0 {
		uint32ToInt64x512(&dst[0], &src[0], whole)
	}
	unsignedGeneric(dst[whole:], src[4*whole:])
}

func unsignedAVX2(dst []int64, src []byte) {
	whole := len(dst) &^ 3
	if whole > 0 {
		uint32ToInt64x256(&dst[0], &src[0], whole)
	}
	unsignedGeneric(dst[whole:], src[4*whole:])
}

func int64ToFloat32AVX512(dst []float32, src []int64) {
	if len(src) > 0 {
		int64ToFloat32x512(&dst[0], &src[0], len(src))
	}
}

func int64ToFloat32AVX2(dst []float32, src []int64) {
	whole := len(src) &^ 7
	if whole > 0 {
		int64ToFloat32x256(&dst[0], &src[0], whole)
	}
	convertGeneric(dst[whole:], src[whole:])
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
