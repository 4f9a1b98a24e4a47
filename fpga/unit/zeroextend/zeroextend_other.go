//go:build !amd64 || purego

package zeroextend

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	extend = simd.Plain(extendGeneric)
	narrow = simd.Plain(narrowGeneric)
)
