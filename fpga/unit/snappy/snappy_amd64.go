//go:build !purego

package snappy

import "github.com/millrace/millrace/fpga/unit/internal/simd"

// kernelsOfLevel returns the kernels of the current level.
func kernelsOfLevel() kernels {
	switch {
	case simd.VBMI():
		return twoByTwo
	case simd.Current() >= simd.AVX2:
		return oneByOne
	}
	return noKernels
}

// elementSizes sets the sizes of the elements that could begin at each of the n bytes at src, a multiple of 64.
func (k kernels) elementSizes(sizes *[2][span]byte, src *byte, n int) {
	if k == twoByTwo {
		elementSizes512(sizes, src, n)
	} else {
		elementSizes256(sizes, src, n)
	}
}

// walk decodes the elements from src[from] on that begin before src[n], until it comes to one that it leaves to Go.
func (k kernels) walk(dst []byte, at int, src []byte, from, n int, sizes *[2][span]byte) (to, element int) {
	if k == twoByTwo {
		return walkPairs(&dst[0], at, len(dst)-margin, &src[0], from, n, sizes, &tags.masks[0])
	}
	return walkSingly(&dst[0], at, len(dst)-margin, &src[0], from, n, sizes, &tags.masks[0])
}
