//go:build !purego

package zeroextend

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	extend = simd.Paths[func(v []int64)]{extendGeneric, extendAVX2, extendAVX512}
	narrow = simd.Paths[func(dst []byte, src []int64) (fit int)]{narrowGeneric, narrowAVX2, narrowAVX512}
)

func extendAVX512(v []int64) {
	if len(v) > 0 {
		zeroExtend512(&v[0], len(v))
	}
}

func extendAVX2(v []int64) {
	whole := len(v) &^ 3
	if whole > 0 {
		zeroExtend256(&v[0], whole)
	}
	extendGeneric(v[whole:])
}

// The kernels stop before a block in which something does not fit; the plain path finds it there.

func narrowAVX512(dst []byte, src []int64) (fit int) {
	if len(src) == 0 {
		return 0
	}
	n := narrow512(&dst[0], &src[0], len(src))
	return n + narrowGeneric(dst[4*n:], src[n:])
}

func narrowAVX2(dst []byte, src []int64) (fit int) {
	if len(src) == 0 {
		return 0
	}
	n := narrow256(&dst[0], &src[0], len(src))
	return n + narrowGeneric(dst[4*n:], src[n:])
}
