//go:build !purego

package clamp

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	clampInt64   = simd.Paths[func(v []int64, lo, hi int64)]{clampGeneric[int64], clampInt64AVX2, clampInt64AVX512}
	clampFloat32 = simd.Paths[func(v []float32, lo, hi float32)]{clampGeneric[float32], clampFloat32AVX2,
		clampFloat32AVX512}
	clampFloat64 = simd.Paths[func(v []float64, lo, hi float64)]{clampGeneric[float64], clampFloat64AVX2,
		clampFloat64AVX512}
)

func clampInt64AVX512(v []int64, lo, hi int64) {
	if len(v) > 0 {
		clampInt64x512(&v[0], len(v), lo, hi)
	}
}

func clampInt64AVX2(v []int64, lo, hi int64) {
	whole := len(v) &^ 3
	if whole > 0 {
		clampInt64x256(&v[0], whole, lo, hi)
	}
	clampGeneric(v[whole:], lo, hi)
}

func clampFloat32AVX512(v []float32, lo, hi float32) {
	if len(v) > 0 {
		clampFloat32x512(&v[0], len(v), lo, hi)
	}
}

func clampFloat32AVX2(v []float32, lo, hi float32) {
	whole := len(v) &^ 7
	if whole > 0 {
		clampFloat32x256(&v[0], whole, lo, hi)
	}
	clampGeneric(v[whole:], lo, hi)
}

func clampFloat64AVX512(v []float64, lo, hi float64) {
	if len(v) > 0 {
		clampFloat64x512(&v[0], len(v), lo, hi)
	}
}

func clampFloat64AVX2(v []float64, lo, hi float64) {
	whole := len(v) &^ 3
	if whole > 0 {
		clampFloat64x256(&v[0], whole, lo, hi)
	}
	clampGeneric(v[whole:], lo, hi)
}
