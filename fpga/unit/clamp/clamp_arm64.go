//go:build !purego

package clamp

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	clampInt64 = simd.Paths[func(v []int64, lo, hi int64)]{simd.Generic: clampGeneric[int64],
		simd.NEON: clampInt64OfNEON}
	clampFloat32 = simd.Paths[func(v []float32, lo, hi float32)]{simd.Generic: clampGeneric[float32],
		simd.NEON: clampFloat32OfNEON}
	clampFloat64 = simd.Paths[func(v []float64, lo, hi float64)]{simd.Generic: clampGeneric[float64],
		simd.NEON: clampFloat64OfNEON}
)

func clampInt64OfNEON(v []int64, lo, hi int64) {
	whole := len(v) &^ 7
	if whole > 0 {
		clampInt64NEON(&v[0], whole, lo, hi)
	}
	clampGeneric(v[whole:], lo, hi)
}

func clampFloat32OfNEON(v []float32, lo, hi float32) {
	whole := len(v) &^ 15
	if whole > 0 {
		clampFloat32NEON(&v[0], whole, lo, hi)
	}
	clampGeneric(v[whole:], lo, hi)
}

func clampFloat64OfNEON(v []float64, lo, hi float64) {
	whole := len(v) &^ 7
	if whole > 0 {
		clampFloat64NEON(&v[0], whole, lo, hi)
	}
	clampGeneric(v[whole:], lo, hi)
}
