package positivemodulus

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
)

func TestPaths(t *testing.T) {
	proving.Picks(t, &mod, "modGeneric", "modAVX2", "modAVX512", "modNEON")
}

// Every small divisor that is a prime or near a power of two, both sides of where divisors become wide, every width.
func divisors() []int64 {
	all := []int64{1, 2, 3, 5, 7, 11, 100, 5000, 8191, 8192, 16381, 500000, math.MaxInt64 - 1, math.MaxInt64}
	for k := 2; k < 63; k++ {
		all = append(all, 1<<k-1, 1<<k, 1<<k+1)
	}
	return all
}

// number returns the i-th of the dividends that are hard for d: multiples of d and their neighbours, halves of
// multiples, the ends of int64 and of the halves that the kernels split at; and some at random.
func number(i int, d int64) int64 {
	r := int64(uint64(i) * 0x9e3779b97f4a7c15)
	switch i % 6 {
	case 0:
		return []int64{0, 1, -1, math.MaxInt64, math.MinInt64, math.MinInt64 + 1, math.MaxInt32, math.MinInt32,
			math.MaxUint32,
			1<<32 + 1, -1 << 32, -1<<32 - 1, 1 << 53, 1<<53 + 1, -1<<53 - 1, 1<<62 - 1}[i/6%16]
	case 1:
		return r >> (i / 6 % 64)
	case 2:
		return r / d * d
	case 3:
		return r/d*d - 1
	case 4:
		return r/d*d + d/2
	}
	return math.MaxInt64/d*d - int64(i%3) + 1
}

func TestEveryPathEqualsReference(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		src, dst := make([]int64, 6*64+5), make([]int64, 6*64+5)
		for _, d := range divisors() {
			m, err := New(d)
			require.NoError(t, err)
			for i := range src {
				src[i] = number(i, d)
			}
			m.Mod(dst, src)
			for i, x := range src {
				if want := Reference(x, d); want != dst[i] {
					require.Equal(t, want, dst[i], "%d mod %d", x, d)
				}
			}
		}
	})
}

func TestEveryPathInEveryPlace(t *testing.T) {
	all := divisors()
	proving.EachLevel(t, func(t *testing.T) {
		turn := 0
		want := make([]int64, proving.Lengths)
		proving.Places(t, func(i int) int64 { return number(i, 8191) }, func(dst, src []int64) {
			turn++
			m, err := New(all[turn%len(all)])
			require.NoError(t, err)
			modGeneric(m, want, src)
			m.Mod(dst, src)
			require.True(t, slices.Equal(want[:len(dst)], dst), "%d numbers modulo %d", len(src), all[turn%len(all)])
			m.Mod(src, src)
			require.True(t, slices.Equal(dst, src), "in place")
		})
	})
}

func TestModAllocatesNothing(t *testing.T) {
	src, dst := make([]int64, 100), make([]int64, 100)
	for _, d := range []int64{1000, 1024} {
		m, err := New(d)
		require.NoError(t, err)
		proving.EachLevel(t, func(t *testing.T) {
			require.Zero(t, testing.AllocsPerRun(10, func() { m.Mod(dst, src) }))
		})
	}
}
