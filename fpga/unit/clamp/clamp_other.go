//go:build (!amd64 && !arm64) || purego

package clamp

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	clampInt64   = simd.Plain(clampGeneric[int64])
	clampFloat32 = simd.Plain(clampGeneric[float32])
	clampFloat64 = simd.Plain(clampGeneric[float64])
)
