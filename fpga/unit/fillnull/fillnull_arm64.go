//go:build !purego

package fillnull

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	fill64 = simd.Paths[func(v []uint64, valid []byte, fill uint64)]{simd.Generic: fillGeneric[uint64],
		simd.NEON: fill64NEON}
	fill32 = simd.Paths[func(v []uint32, valid []byte, fill uint32)]{simd.Generic: fillGeneric[uint32],
		simd.NEON: fill32NEON}
)

func fill64NEON(v []uint64, valid []byte, fill uint64) {
	whole := len(v) &^ 7
	if whole > 0 {
		fill64xNEON(&v[0], &valid[0], whole, fill)
	}
	fillGeneric(v[whole:], valid[whole:], fill)
}

func fill32NEON(v []uint32, valid []byte, fill uint32) {
	whole := len(v) &^ 15
	if whole > 0 {
		fill32xNEON(&v[0], &valid[0], whole, fill)
	}
	fillGeneric(v[whole:], valid[whole:], fill)
}
