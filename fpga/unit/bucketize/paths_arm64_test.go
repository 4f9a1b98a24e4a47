//go:build !purego

package bucketize

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

// Only a NaN stops a kernel, before its block.
func TestKernelsDoAllButNaNs(t *testing.T) {
	const n = 999
	dst, src := make([]int64, n), make([]float32, n)
	for i := range src {
		if src[i] = float32(value(i)); src[i] != src[i] {
			src[i] = 1
		}
	}
	for name, b := range tables(t, NaNFirst) {
		x := &b.narrow
		if x.steps > mostSteps {
			continue
		}
		look := func() int {
			return bucketFloat32NEON(&dst[0], &src[0], n, unsafe.SliceData(x.regions), &x.cells[0], &x.thresholds[0],
				x.low, x.high, uint32(x.shift), x.steps-1)
		}
		t.Run(name, func(t *testing.T) {
			proving.Whole(t, simd.NEON, n/block*block, look)
			src[702] = float32(math.NaN())
			require.Equal(t, 700, look())
			src[702] = 1
		})
	}
}
