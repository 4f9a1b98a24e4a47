//go:build !amd64 || purego

package zeroextend

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	extend = simd.Paths[func(v []int64)]{extendGeneric}
	narrow = simd.Paths[func(dst []byte, src []int64) (fit int)]{narrowGeneric}
)
