//go:build !amd64 || purego

package logn

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var log = simd.Paths[func(dst, src []float32, add, lo, hi float32)]{logGeneric}
