package zeroextend

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
)

func TestPaths(t *testing.T) {
	proving.Picks(t, &extend, "extendGeneric", "extendAVX2", "extendAVX512")
	proving.Picks(t, &narrow, "narrowGeneric", "narrowAVX2", "narrowAVX512")
}

var edges = []int64{0, 1, -1, math.MaxInt32, math.MinInt32, math.MaxInt32 + 1, math.MinInt32 - 1, math.MaxUint32,
	1 << 32, -1 << 32, math.MinInt64, math.MaxInt64}

func number(i int) int64 {
	if i%3 == 0 {
		return edges[i/3%len(edges)]
	}
	return int64(uint64(i)*0x9e3779b97f4a7c15) >> (i % 64)
}

func TestEveryPathInEveryPlace(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		proving.Places(t, number, func(dst, src []int64) {
			copy(dst, src)
			Int64(dst)
			for i, x := range src {
				if Reference(x) != dst[i] {
					require.Equal(t, Reference(x), dst[i], "%d", x)
				}
			}
		})
	})
}

// Bytes of the destination are at every alignment and end at the fence; the first number that does not fit is anywhere.
func TestNarrowInEveryPlace(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		to, from := proving.NewFence(t, 4*proving.Lengths+64), proving.NewFence(t, 8*proving.Lengths)
		for n := range proving.Lengths {
			src := proving.End[int64](from, n)
			for _, wrong := range []int{-1, 0, n / 3, n - 9, n - 2, n - 1} {
				for i := range src {
					src[i] = int64(int32(number(i + n)))
				}
				if wrong >= 0 && wrong < n {
					src[wrong] = edges[5+wrong%7]
				}
				fit := slices.IndexFunc(src, func(x int64) bool { return int64(int32(x)) != x })
				if fit < 0 {
					fit = n
				}
				for _, dst := range [][]byte{proving.End[byte](to, 4*n), proving.Start[byte](to, n%64, 4*n)} {
					clear(dst)
					require.Equal(t, fit, Narrow(dst, src), "%d numbers", n)
					for i, x := range src[:fit] {
						require.Equal(t, uint32(x), binary.LittleEndian.Uint32(dst[4*i:]))
					}
				}
			}
		}
	})
}

func TestNarrowIsAllOrTheNumbersBefore(t *testing.T) {
	dst := make([]byte, 8)
	require.Equal(t, 1, Narrow(dst, []int64{-2, 1 << 31}))
	require.Equal(t, []byte{0xfe, 0xff, 0xff, 0xff}, dst[:4])
	require.Equal(t, 2, Narrow(dst, []int64{math.MinInt32, math.MaxInt32}))
	require.Equal(t, []byte{0, 0, 0, 0x80, 0xff, 0xff, 0xff, 0x7f}, dst)
	require.Zero(t, Narrow(nil, nil))
}

func TestKernelsAllocateNothing(t *testing.T) {
	v, dst := make([]int64, 100), make([]byte, 400)
	proving.EachLevel(t, func(t *testing.T) {
		require.Zero(t, testing.AllocsPerRun(10, func() { Int64(v); Narrow(dst, v) }))
	})
}
