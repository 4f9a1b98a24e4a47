//go:build !amd64 || purego

package convert

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	int32ToInt64     = simd.Plain(signedGeneric)
	uint32ToInt64    = simd.Plain(unsignedGeneric)
	int64ToFloat32   = simd.Plain(convertGeneric[float32, int64])
	int64ToFloat64   = simd.Plain(convertGeneric[float64, int64])
	float32ToFloat64 = simd.Plain(convertGeneric[float64, float32])
	float64ToFloat32 = simd.Plain(narrowGeneric)
)
