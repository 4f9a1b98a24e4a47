package unsignedmodulus_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/unsignedmodulus"
)

func TestModulusOutOfRange(t *testing.T) {
	for _, m := range []int64{0, -1, math.MinInt64} {
		_, err := unsignedmodulus.New(m)
		require.ErrorIs(t, err, unsignedmodulus.ErrModulus)
	}
	for _, m := range []int64{1, math.MaxInt64} {
		_, err := unsignedmodulus.New(m)
		require.NoError(t, err)
	}
}

// hardIDs have remainders that go wrong first: the ends of both readings of 64 bits, and what lies beside 2^63.
var hardIDs = []int64{0, 1, -1, 9, 10, math.MaxInt64, math.MinInt64, math.MinInt64 + 1, math.MaxInt64 - 1, -2}

var hardModuli = []int64{1, 2, 3, 10, 1000, 1 << 31, 1<<62 - 1, 1 << 62, 1<<62 + 1, math.MaxInt64 - 1, math.MaxInt64}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.OneOf(rapid.SampledFrom(hardModuli), rapid.Int64Range(1, math.MaxInt64)).Draw(t, "modulus")
		modulus, err := unsignedmodulus.New(m)
		require.NoError(t, err)
		ids := append(slices.Clone(hardIDs), rapid.SliceOf(rapid.Int64()).Draw(t, "ids")...)
		got := make([]int64, len(ids))
		modulus.Mod(got, ids)
		for i, id := range ids {
			require.Equal(t, unsignedmodulus.Reference(id, m), got[i], "%d mod %d", uint64(id), m)
		}
		modulus.Mod(ids, ids)
		require.Equal(t, got, ids, "in place")
	})
}

func TestModAllocatesNothing(t *testing.T) {
	modulus, err := unsignedmodulus.New(1000)
	require.NoError(t, err)
	ids := make([]int64, 100)
	require.Zero(t, testing.AllocsPerRun(10, func() { modulus.Mod(ids, ids) }))
}

func BenchmarkMod(b *testing.B) {
	src, dst := make([]int64, 2048), make([]int64, 2048)
	for i := range src {
		src[i] = int64(uint64(i) * 0x9e3779b97f4a7c15)
	}
	modulus, err := unsignedmodulus.New(500_000)
	require.NoError(b, err)
	for b.Loop() {
		modulus.Mod(dst, src)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(src)), "ns/value")
}
