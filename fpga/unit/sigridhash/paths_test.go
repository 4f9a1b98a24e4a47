package sigridhash

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
)

func TestPaths(t *testing.T) {
	proving.Picks(t, &hash, "hashGeneric", "hashAVX2", "hashAVX512", "hashNEON")
	proving.Picks(t, &hash32, "hash32Generic", "hash32AVX2", "hash32AVX512", "hash32NEON")
}

// Small and wide divisors on both sides of where one becomes the other, and of every width.
func maxima() []int64 {
	all := []int64{1, 2, 3, 5, 7, 100, 8191, 1<<14 - 1, 1 << 14, 1<<14 + 1, 500000, 1<<21 - 1, 1 << 21, 1<<31 - 1,
		1 << 31, 1<<31 + 1, math.MaxInt64 - 1, math.MaxInt64}
	for k := 5; k < 63; k += 3 {
		all = append(all, 1<<k-1, 1<<k, 1<<k+1)
	}
	return all
}

var edges = []int64{0, 1, -1, math.MaxInt32, math.MinInt32, math.MaxUint32, 1 << 53, math.MaxInt64, math.MinInt64,
	math.MinInt64 + 1}

func id(i int) int64 {
	if i%5 == 0 {
		return edges[i/5%len(edges)]
	}
	return int64(uint64(i)*0x9e3779b97f4a7c15) >> (i % 64)
}

func TestEveryPathInEveryPlace(t *testing.T) {
	limits := maxima()
	proving.EachVariant(t, func(t *testing.T) {
		turn := 0
		want := make([]int64, proving.Lengths)
		proving.Places(t, id, func(dst, src []int64) {
			turn++
			p := Params{Salt: id(turn), Max: limits[turn%len(limits)]}
			h, err := New(p)
			require.NoError(t, err)
			for i, x := range src {
				want[i] = 0
				if p.Max > 1 {
					want[i] = h.div.Mod(Raw(x, p.Salt))
				}
			}
			h.Hash(dst, src)
			require.True(t, slices.Equal(want[:len(dst)], dst), "%d ids, %+v", len(src), p)
			h.Hash(src, src)
			require.True(t, slices.Equal(dst, src), "in place")
		})
	})
}

// Bytes of the destination are at every alignment and end at the fence.
func TestHash32InEveryPlace(t *testing.T) {
	limits := maxima()
	proving.EachVariant(t, func(t *testing.T) {
		turn := 0
		want := make([]int64, proving.Lengths)
		to := proving.NewFence(t, 4*proving.Lengths+64)
		proving.Places(t, id, func(_, src []int64) {
			turn++
			h, err := New(Params{Salt: id(turn), Max: limits[turn%len(limits)]})
			require.NoError(t, err)
			h.Hash(want, src)
			for _, dst := range [][]byte{proving.End[byte](to, 4*len(src)),
				proving.Start[byte](to, turn%64, 4*len(src))} {
				clear(dst)
				h.Hash32(dst, src)
				for i := range src {
					if got := binary.LittleEndian.Uint32(dst[4*i:]); got != uint32(want[i]) {
						require.Equal(t, uint32(want[i]), got, "id %d of %d, max %d", i, len(src),
							limits[turn%len(limits)])
					}
				}
			}
		})
	})
}

// The two things that Hash32Sum does are what others do, in every place, for few ids and for many.
func TestHash32SumInEveryPlace(t *testing.T) {
	limits := maxima()
	check := func(t *testing.T, turn int, dst []byte, src []int64) {
		h, err := New(Params{Salt: id(turn), Max: limits[turn%len(limits)]})
		require.NoError(t, err)
		want, raw := make([]byte, 4*len(src)), make([]byte, 0, 8*len(src))
		h.Hash32(want, src)
		for _, x := range src {
			raw = binary.LittleEndian.AppendUint64(raw, uint64(x))
		}
		before := []byte("what came before"[:turn%17])
		clear(dst)
		sum := h.Hash32Sum(dst, src, crc32.ChecksumIEEE(before))
		require.Equal(t, crc32.ChecksumIEEE(append(before, raw...)), sum, "%d ids, max %d", len(src),
			limits[turn%len(limits)])
		require.Equal(t, want, dst, "%d ids, max %d", len(src), limits[turn%len(limits)])
	}
	proving.EachVariant(t, func(t *testing.T) {
		turn := 0
		to := proving.NewFence(t, 4*proving.Lengths+64)
		proving.Places(t, id, func(_, src []int64) {
			turn++
			check(t, turn, proving.End[byte](to, 4*len(src)), src)
			check(t, turn, proving.Start[byte](to, turn%64, 4*len(src)), src)
		})
		from, many := proving.NewFence(t, 8*5000), proving.NewFence(t, 4*5000)
		for n := 500; n < 5000; n += 331 {
			src := proving.End[int64](from, n)
			for i := range src {
				src[i] = id(i + n)
			}
			check(t, n, proving.End[byte](many, 4*n), src)
		}
	})
}

func TestHash32EqualsReference(t *testing.T) {
	proving.EachVariant(t, func(t *testing.T) {
		for _, limit := range maxima() {
			src, dst := make([]int64, 61), make([]byte, 62*4)
			for i := range src {
				src[i] = id(i)
			}
			copy(dst[61*4:], "past")
			h, err := New(Params{Salt: limit * 7, Max: limit})
			require.NoError(t, err)
			require.Equal(t, limit <= 1<<31, h.Fits32())
			h.Hash32(dst, src)
			for i, x := range src {
				want := Reference(x, limit*7, limit)
				if h.Fits32() {
					require.EqualValues(t, int32(want), want)
				}
				require.Equal(t, uint32(want), binary.LittleEndian.Uint32(dst[4*i:]), "id %d, max %d", x, limit)
			}
			require.Equal(t, "past", string(dst[61*4:]))
		}
	})
}

func TestEveryPathEqualsReference(t *testing.T) {
	proving.EachVariant(t, func(t *testing.T) {
		for _, limit := range maxima() {
			src, dst := make([]int64, 61), make([]int64, 62)
			for i := range src {
				src[i] = id(i)
			}
			dst[61] = -7
			h, err := New(Params{Salt: limit * 7, Max: limit})
			require.NoError(t, err)
			h.Hash(dst, src)
			for i, x := range src {
				require.Equal(t, Reference(x, limit*7, limit), dst[i], "id %d, max %d", x, limit)
			}
			require.Equal(t, int64(-7), dst[61], "past the end")
		}
	})
}

func TestHashAllocatesNothing(t *testing.T) {
	const n = 200 // enough for the kernel of Hash32Sum
	src, dst, narrow := make([]int64, n), make([]int64, n), make([]byte, 4*n)
	for _, limit := range []int64{1000, 500000} {
		h, err := New(Params{Max: limit})
		require.NoError(t, err)
		proving.EachVariant(t, func(t *testing.T) {
			require.Zero(t, testing.AllocsPerRun(10, func() {
				h.Hash(dst, src)
				h.Hash32(narrow, src)
				h.Hash32Sum(narrow, src, 1)
			}))
		})
	}
}
