//go:build !purego

package encoding

func wholeVectors(dst []uint32, wide []int64, src []byte) map[int]func(width int) int {
	kernels := map[int]func(width int) int{}
	for _, w := range []int{1, 7, 25} {
		kernels[w] = func(w int) int { return unpackNarrow256(&dst[0], &src[0], len(dst), 3, w, len(src)) }
	}
	for _, w := range []int{26, 32} {
		kernels[w] = func(w int) int { return unpackWide256(&dst[0], &src[0], len(dst), 3, w, len(src)) }
	}
	for _, w := range []int{33, 49, 57} {
		kernels[w] = func(w int) int { return unpackWidest256(&wide[0], &src[0], len(wide), 3, w, len(src)) }
	}
	return kernels
}
