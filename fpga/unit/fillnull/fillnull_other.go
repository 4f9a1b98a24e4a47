//go:build !amd64 || purego

package fillnull

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	fill64 = simd.Paths[func(v []uint64, valid []byte, fill uint64)]{fillGeneric[uint64]}
	fill32 = simd.Paths[func(v []uint32, valid []byte, fill uint32)]{fillGeneric[uint32]}
)
