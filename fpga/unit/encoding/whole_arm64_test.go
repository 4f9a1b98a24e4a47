//go:build !purego

package encoding

import "github.com/millrace/millrace/fpga/unit/internal/simd"

// wholeVectors returns kernels by a width that they take, and the level of all of them.
func wholeVectors(dst []uint32, wide []int64, src []byte) (simd.Level, map[int]func(width int) int) {
	kernels := map[int]func(width int) int{}
	for _, w := range []int{1, 7, 25} {
		kernels[w] = func(w int) int { return unpackNarrowNEON(&dst[0], &src[0], len(dst), 3, w, len(src)) }
	}
	for _, w := range []int{26, 32} {
		kernels[w] = func(w int) int { return unpackWideNEON(&dst[0], &src[0], len(dst), 3, w, len(src)) }
	}
	for _, w := range []int{33, 49, 57} {
		kernels[w] = func(w int) int { return unpackWidestNEON(&wide[0], &src[0], len(wide), 3, w, len(src)) }
	}
	return simd.NEON, kernels
}
