//go:build !purego

package logn

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var log = simd.Paths[func(dst, src []float32, add, lo, hi float32)]{logGeneric, logAVX2, logAVX512}

// The vector paths compute what the plain one does, with other tables and series that are as good, and hand it the
// blocks that Ziv's test stops at.

func logAVX512(dst, src []float32, add, lo, hi float32) {
	const block = 16
	for len(src) > 0 {
		n := log512(&dst[0], &src[0], len(src), add, lo, hi, &vectorTable)
		end := min(n+block, len(src))
		logGeneric(dst[n:end], src[n:end], add, lo, hi)
		dst, src = dst[end:], src[end:]
	}
}

func logAVX2(dst, src []float32, add, lo, hi float32) {
	const block = 8
	for len(src) >= block {
		n := log256(&dst[0], &src[0], len(src), add, lo, hi)
		end := min(n+block, len(src))
		logGeneric(dst[n:end], src[n:end], add, lo, hi)
		dst, src = dst[end:], src[end:]
	}
	logGeneric(dst, src, add, lo, hi)
}
