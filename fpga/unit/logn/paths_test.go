package logn

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/clamp"
	"github.com/millrace/millrace/fpga/unit/internal/proving"
)

func TestPaths(t *testing.T) {
	proving.Picks(t, &log, "logGeneric", "logAVX2", "logAVX512", "logNEON")
}

// value returns the i-th of a mixture that has every kind of lane next to every other: ordinary values, those that
// Ziv's test stops at, and special ones.
func value(i int) float32 {
	f := math.Float32frombits
	r := uint32(i) * 2654435761
	switch r >> 29 {
	case 0:
		return []float32{0, f(0x80000000), f(1), f(0x007fffff), f(0x00800000), f(0x807fffff), f(0x7f7fffff),
			f(0x7f800000),
			f(0xff800000), f(0x7fc00000), f(0xffc12345), f(0x7f800001), 1, -1, f(0x3f7fffff), f(0x3f800001)}[r>>4&15]
	case 1:
		return f([]uint32{0x3c413d3a, 0x41178feb, 0x4c5d65a5, 0x65d890d3, 0x6f31a8ec}[r>>8%5])
	case 2:
		return f(r * 97)
	case 3:
		return float32(r >> 4 & 0xfff)
	}
	return f(0x3f000000 + r>>6&0xffffff)
}

// bounds are what values are clamped to: nothing, what rm5 has, a range, one number, zeros of both signs.
var bounds = [][2]float32{{float32(math.Inf(-1)), float32(math.Inf(1))}, {0, float32(math.Inf(1))}, {-2.5, 1000},
	{3, 3}, {float32(math.Copysign(0, -1)), 0}}

// clampedLog is the oracle: two steps, the logarithm's by plain Go.
func clampedLog(dst, src []float32, add, lo, hi float32) {
	within := make([]float32, len(src))
	for i, x := range src {
		within[i] = clamp.Reference(x, lo, hi)
	}
	logGeneric(dst[:len(src)], within, add, float32(math.Inf(-1)), float32(math.Inf(1)))
}

func same(t require.TestingT, want, got []float32, src []float32, add float32) {
	for i, x := range src {
		if math.Float32bits(want[i]) != math.Float32bits(got[i]) {
			require.Equal(t, math.Float32bits(want[i]), math.Float32bits(got[i]), "value %d of %d: %x + %x", i,
				len(src), x, add)
		}
	}
}

func TestEveryPathInEveryPlace(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		want, keep := make([]float32, proving.Lengths), make([]float32, proving.Lengths)
		turn := 0
		proving.Places(t, value, func(dst, src []float32) {
			turn++
			add := []float32{0, 1, 3, -0.5}[turn%4]
			lo, hi := bounds[turn%len(bounds)][0], bounds[turn%len(bounds)][1]
			clampedLog(want, src, add, lo, hi)
			LogClamped(dst, src, add, lo, hi)
			same(t, want, dst, src, add)
			copy(keep, src)
			LogClamped(src, src, add, lo, hi)
			same(t, want, src, keep[:len(src)], add)
			copy(src, keep)
			clampedLog(want, src, add, bounds[0][0], bounds[0][1])
			logUnclamped(dst, src, add)
			same(t, want, dst, src, add)
		})
	})
}

func TestLogAllocatesNothing(t *testing.T) {
	src, dst := make([]float32, 100), make([]float32, 100)
	for i := range src {
		src[i] = value(i)
	}
	proving.EachLevel(t, func(t *testing.T) {
		require.Zero(t, testing.AllocsPerRun(10, func() { logUnclamped(dst, src, 0); LogClamped(dst, src, 0, 0, 1) }))
	})
}
