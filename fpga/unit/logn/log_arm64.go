//go:build !purego

package logn

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var log = simd.Paths[func(dst, src []float32, add, lo, hi float32)]{simd.Generic: logGeneric, simd.NEON: logNEON}

// logNEON computes what the plain path does, operation for operation, and hands it the blocks that Ziv's test stops at,
// and those with special values.
func logNEON(dst, src []float32, add, lo, hi float32) {
	const block = 4
	for len(src) >= block {
		n := log4NEON(&dst[0], &src[0], len(src), add, lo, hi, &table)
		end := min(n+block, len(src))
		logGeneric(dst[n:end], src[n:end], add, lo, hi)
		dst, src = dst[end:], src[end:]
	}
	logGeneric(dst, src, add, lo, hi)
}
