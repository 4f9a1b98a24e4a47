//go:build !amd64 || purego

package hextoint

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var hex = simd.Plain(hexGeneric)
