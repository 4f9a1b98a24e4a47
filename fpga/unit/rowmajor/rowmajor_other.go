//go:build (!amd64 && !arm64) || purego

package rowmajor

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	writeRows = simd.Plain(writeGeneric)

	writeBFloatRows = simd.Plain(writeBFloatGeneric)
)
