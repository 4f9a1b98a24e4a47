package clamp

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

func TestPaths(t *testing.T) {
	proving.Picks(t, &clampInt64, "clampGeneric", "clampInt64AVX2", "clampInt64AVX512", "clampInt64OfNEON")
	proving.Picks(t, &clampFloat32, "clampGeneric", "clampFloat32AVX2", "clampFloat32AVX512", "clampFloat32OfNEON")
	proving.Picks(t, &clampFloat64, "clampGeneric", "clampFloat64AVX2", "clampFloat64AVX512", "clampFloat64OfNEON")
}

// bits returns the i-th of a mixture of patterns that are hard as one type or another: NaNs quiet and signalling,
// infinities, denormals, zeros, the ends of int64.
func bits(i int) uint64 {
	r := uint64(i) * 0x9e3779b97f4a7c15
	switch r >> 62 {
	case 0:
		return []uint64{0, 1, 1 << 63, 1<<63 - 1, 1<<64 - 1, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff0000000000001,
			0xfff8000000000000,
			0x000fffffffffffff, math.Float64bits(1), math.Float64bits(-1), math.Float64bits(1e300), 5,
			0x8000000000000001, 0x7fefffffffffffff}[r>>8&15]
	case 1:
		return []uint64{0x7fc00000, 0xffc00001, 0x7f800001, 0x80000000, 0x7f800000, 0xff800000, 1, 0x80000001,
			0x3f800000, 0xbf800000,
			0x007fffff, 0x7f7fffff, 0x40400000, 0x40400001, 0x3f7fffff, 0xc0400000}[r>>8&15]
	case 2:
		return uint64(int64(r>>8&15) - 8)
	}
	return r * 31
}

func inEveryPlace[T int64 | float32 | float64](t *testing.T, paths *simd.Paths[func(v []T, lo, hi T)],
	of func(uint64) T, to func(T) uint64, bounds [][2]T) {
	proving.EachLevel(t, func(t *testing.T) {
		turn := 0
		want := make([]T, proving.Lengths)
		proving.Places(t, func(i int) T { return of(bits(i)) }, func(dst, src []T) {
			turn++
			lo, hi := bounds[turn%len(bounds)][0], bounds[turn%len(bounds)][1]
			copy(dst, src)
			copy(want, src)
			clampGeneric(want[:len(src)], lo, hi)
			paths.Pick()(dst, lo, hi)
			for i, x := range src {
				if to(want[i]) != to(Reference(x, lo, hi)) || to(dst[i]) != to(want[i]) {
					require.Equal(t, to(want[i]), to(dst[i]), "value %d of %d, %v in [%v, %v]", i, len(src), x, lo, hi)
				}
			}
		})
	})
}

func TestEveryPathInEveryPlace(t *testing.T) {
	zero := math.Copysign(0, -1)
	inEveryPlace(t, &clampInt64, func(b uint64) int64 { return int64(b) }, func(x int64) uint64 { return uint64(x) },
		[][2]int64{{0, math.MaxInt64}, {math.MinInt64, math.MaxInt64}, {-3, 4}, {7, 7}, {math.MinInt64, -1}})
	inEveryPlace(t, &clampFloat32, func(b uint64) float32 { return math.Float32frombits(uint32(b)) },
		func(x float32) uint64 { return uint64(math.Float32bits(x)) },
		[][2]float32{{0, 1}, {float32(zero), 0}, {0, float32(zero)}, {0, float32(math.Inf(1))},
			{float32(math.Inf(-1)), 1e-45}, {-3, 3}})
	inEveryPlace(t, &clampFloat64, math.Float64frombits, math.Float64bits,
		[][2]float64{{0, 1}, {zero, 0}, {0, zero}, {0, math.Inf(1)}, {math.Inf(-1), 5e-324}, {-3, 3}})
}

func TestClampAllocatesNothing(t *testing.T) {
	v := make([]int64, 100)
	proving.EachLevel(t, func(t *testing.T) {
		require.Zero(t, testing.AllocsPerRun(10, func() { _ = Int64(v, 0, 5) }))
	})
}
