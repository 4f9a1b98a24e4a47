//go:build (!amd64 && !arm64) || purego

package fillnull

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	fill64 = simd.Plain(fillGeneric[uint64])
	fill32 = simd.Plain(fillGeneric[uint32])
)
