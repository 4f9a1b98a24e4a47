//go:build !amd64 || purego

package clamp

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	clampInt64   = simd.Paths[func(v []int64, lo, hi int64)]{clampGeneric[int64]}
	clampFloat32 = simd.Paths[func(v []float32, lo, hi float32)]{clampGeneric[float32]}
	clampFloat64 = simd.Paths[func(v []float64, lo, hi float64)]{clampGeneric[float64]}
)
