//go:build (!amd64 && !arm64) || purego

package bucketize

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	narrowFloat32 = simd.Plain(narrowGeneric[float32])
	narrowFloat64 = simd.Plain(narrowGeneric[float64])
	narrowInt64   = simd.Plain(narrowGeneric[int64])
)
