//go:build !purego

package fillnull

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	fill64 = simd.Paths[func(v []uint64, valid []byte, fill uint64)]{fillGeneric[uint64], fill64AVX2, fill64AVX512}
	fill32 = simd.Paths[func(v []uint32, valid []byte, fill uint32)]{fillGeneric[uint32], fill32AVX2, fill32AVX512}
)

func fill64AVX512(v []uint64, valid []byte, fill uint64) {
	if len(v) > 0 {
		fill64x512(&v[0], &valid[0], len(v), fill)
	}
}

func fill64AVX2(v []uint64, valid []byte, fill uint64) {
	whole := len(v) &^ 3
	if whole > 0 {
		fill64x256(&v[0], &valid[0], whole, fill)
	}
	fillGeneric(v[whole:], valid[whole:], fill)
}

func fill32AVX512(v []uint32, valid []byte, fill uint32) {
	if len(v) > 0 {
		fill32x512(&v[0], &valid[0], len(v), fill)
	}
}

func fill32AVX2(v []uint32, valid []byte, fill uint32) {
	whole := len(v) &^ 7
	if whole > 0 {
		fill32x256(&v[0], &valid[0], whole, fill)
	}
	fillGeneric(v[whole:], valid[whole:], fill)
}
