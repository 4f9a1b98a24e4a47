//go:build (!amd64 && !arm64) || purego

package logn

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var log = simd.Plain(logGeneric)
