//go:build !purego

package logn

import (
	"math"
	"testing"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

// Ordinary values, none of which Ziv's test stops at, as their results being right with no way back shows.
func TestKernelsDoOrdinaryValues(t *testing.T) {
	const n = 1000
	lo, hi := float32(math.Inf(-1)), float32(math.Inf(1))
	src, dst, want := make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range src {
		src[i] = float32(i)
	}
	logGeneric(want, src, 1, lo, hi)
	proving.Whole(t, simd.NEON, n, func() int { return log4NEON(&dst[0], &src[0], n, 1, lo, hi, &table) })
	same(t, want, dst, src, 1)
}
