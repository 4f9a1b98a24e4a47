//go:build (!amd64 && !arm64) || purego

package positivemodulus

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var mod = simd.Plain(modGeneric)
