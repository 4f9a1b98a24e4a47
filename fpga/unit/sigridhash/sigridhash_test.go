package sigridhash_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/sigridhash"
)

// SigridHashTest.cpp of TorchArrow: salt 0, max 100, ids 1 to 16; id 0 from the same reference.
func TestTorchArrowsFacts(t *testing.T) {
	ids := make([]int64, 17)
	for i := range ids {
		ids[i] = int64(i)
	}
	h, err := sigridhash.New(sigridhash.Params{Max: 100})
	require.NoError(t, err)
	h.Hash(ids, ids)
	require.Equal(t, []int64{6, 60, 54, 54, 9, 4, 91, 11, 67, 79, 2, 25, 92, 98, 83, 66, 2}, ids)
}

// HashTest.cpp of folly.
func TestFollysFacts(t *testing.T) {
	require.Equal(t, uint64(3389151152926383528), sigridhash.TwangMix64(0x78a87873e2d31daf))
	require.Equal(t, uint64(3061460455458984563), sigridhash.TwangMix64(0x0123456789abcdef))
}

func TestMax(t *testing.T) {
	for _, bad := range []int64{0, -1, math.MinInt64} {
		_, err := sigridhash.New(sigridhash.Params{Max: bad})
		require.ErrorIs(t, err, sigridhash.ErrMax)
	}
	h, err := sigridhash.New(sigridhash.Params{Salt: 5, Max: 1})
	require.NoError(t, err)
	got := []int64{9, 9, 9}
	h.Hash(got, []int64{0, -1})
	require.Equal(t, []int64{0, 0, 9}, got)
	require.Zero(t, sigridhash.Reference(12345, 5, 1))
}

func TestKernelEqualsReference(t *testing.T) {
	edges := []int64{0, 1, -1, math.MaxInt32, math.MinInt32, math.MaxUint32, math.MaxInt64, math.MinInt64}
	maxima := []int64{1, 2, 3, 4, 5, 100, 500000, 1 << 29, 1<<31 - 1, 1 << 31, 1<<62 - 1, 1 << 62, 1<<62 + 1,
		math.MaxInt64 - 1, math.MaxInt64}
	rapid.Check(t, func(t *rapid.T) {
		p := sigridhash.Params{
			Salt: rapid.OneOf(rapid.Int64(), rapid.SampledFrom(edges)).Draw(t, "salt"),
			Max:  rapid.OneOf(rapid.Int64Range(1, math.MaxInt64), rapid.SampledFrom(maxima)).Draw(t, "max"),
		}
		src := append(rapid.SliceOf(rapid.Int64()).Draw(t, "src"), edges...)
		h, err := sigridhash.New(p)
		require.NoError(t, err)
		dst := make([]int64, len(src)+1)
		dst[len(src)] = -7
		proving.WithVariants(func() {
			clear(dst[:len(src)])
			h.Hash(dst, src)
			for i, id := range src {
				require.Equal(t, sigridhash.Reference(id, p.Salt, p.Max), dst[i], "id %d, %+v", id, p)
			}
			require.Equal(t, int64(-7), dst[len(src)], "past the end")
		})
	})
}

func BenchmarkHash(b *testing.B) {
	src, dst, narrow := make([]int64, 2048), make([]int64, 2048), make([]byte, 4*2048)
	for i := range src {
		src[i] = int64(i) * 7919
	}
	for name, limit := range map[string]int64{"small": 8191, "rm": 500000, "any": 1<<62 + 1} {
		h, _ := sigridhash.New(sigridhash.Params{Max: limit})
		b.Run(name, func(b *testing.B) { proving.BenchmarkEachVariant(b, len(src), func() { h.Hash(dst, src) }) })
		b.Run(name+"/int32sum", func(b *testing.B) {
			proving.BenchmarkEachVariant(b, len(src),
				func() { h.Hash32Sum(narrow, src, 0) })
		})
		b.Run(name+"/int32", func(b *testing.B) {
			proving.BenchmarkEachVariant(b, len(src),
				func() { h.Hash32(narrow, src) })
		})
	}
}
