//go:build !amd64 || purego

package hextoint

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var hex = simd.Paths[func(dst []int64, offsets []uint32, data []byte, valid []byte) error]{hexGeneric}
