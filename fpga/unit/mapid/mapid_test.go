package mapid_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/mapid"
)

func TestMap(t *testing.T) {
	keys, values := []int64{math.MinInt64, -5, 0, 10, math.MaxInt64}, []int64{4, 2, 9, 1, 3}
	for _, c := range []struct{ id, want int64 }{
		{math.MinInt64, 4}, {-5, 2}, {0, 9}, {10, 1}, {math.MaxInt64, 3},
		{math.MinInt64 + 1, -8}, {-6, -8}, {1, -8}, {11, -8}, {math.MaxInt64 - 1, -8},
	} {
		index, err := mapid.New(keys)
		require.NoError(t, err)
		got := []int64{c.id}
		index.Map(got, got, values, -8)
		require.Equal(t, c.want, got[0], "%d", c.id)
		require.Equal(t, c.want, mapid.Reference(c.id, keys, values, -8), "reference, %d", c.id)
	}
}

func TestDense(t *testing.T) {
	values := []int64{10, 11, 12}
	for _, c := range []struct{ id, want int64 }{
		{0, 10}, {2, 12}, {3, 7}, {-1, 7}, {math.MinInt64, 7}, {math.MaxInt64, 7},
	} {
		got := []int64{c.id, -9}
		mapid.Dense(got, got[:1], values, 7)
		require.Equal(t, []int64{c.want, -9}, got, "%d", c.id)
		require.Equal(t, c.want, mapid.ReferenceDense(c.id, values, 7), "reference, %d", c.id)
	}
	mapid.Dense(nil, nil, nil, 0)
}

func TestKeysThatAreRefused(t *testing.T) {
	tooMany := make([]int64, mapid.MaxKeys+1)
	for i := range tooMany {
		tooMany[i] = int64(i)
	}
	for name, keys := range map[string][]int64{
		"equal": {1, 1}, "descending": {0, 2, 1}, "too many": tooMany,
	} {
		_, err := mapid.New(keys)
		require.ErrorIs(t, err, mapid.ErrKeys, name)
	}
	most := make([]int64, mapid.MaxKeys)
	for i := range most {
		most[i] = int64(i) * 3
	}
	index, err := mapid.New(most)
	require.NoError(t, err)
	got := []int64{0, 3, 4, 3 * (mapid.MaxKeys - 1), 3 * mapid.MaxKeys}
	index.Map(got, got, most, -1)
	require.Equal(t, []int64{0, 3, -1, 3 * (mapid.MaxKeys - 1), -1}, got)
}

func TestNoKeys(t *testing.T) {
	index, err := mapid.New(nil)
	require.NoError(t, err)
	got := []int64{0, 1, -1}
	index.Map(got, got, nil, 5)
	require.Equal(t, []int64{5, 5, 5}, got)
}

// inverse of the multiplier modulo 2^64, by Newton's method.
func inverse(of uint64) uint64 {
	x := of
	for range 6 {
		x *= 2 - of*x
	}
	return x
}

// Keys that all fall into one slot are found, too.
func TestKeysThatFallTogether(t *testing.T) {
	back := inverse(0x9e3779b97f4a7c15)
	keys, values := make([]int64, 10000), make([]int64, 10000)
	for i := range keys {
		keys[i] = int64(uint64(i+1) * back) // times the multiplier it is i+1, whose upper bits are 0
		values[i] = int64(i)
	}
	slices.Sort(keys)
	index, err := mapid.New(keys)
	require.NoError(t, err)
	src := append([]int64{0, 1, -1}, keys...)
	dst := make([]int64, len(src))
	index.Map(dst, src, values, -1)
	require.Equal(t, append([]int64{-1, -1, -1}, values...), dst)
}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		narrow := rapid.Int64Range(-50, 50)
		anywhere := rapid.OneOf(narrow, rapid.Int64())
		keys := rapid.SliceOfDistinct(anywhere, rapid.ID[int64]).Draw(t, "keys")
		slices.Sort(keys)
		values := rapid.SliceOfN(rapid.Int64(), len(keys), len(keys)).Draw(t, "values")
		src := rapid.SliceOf(anywhere).Draw(t, "ids")
		if len(keys) > 0 {
			src = append(src, rapid.SliceOf(rapid.SampledFrom(keys)).Draw(t, "present")...)
		}
		other := rapid.Int64().Draw(t, "other")
		index, err := mapid.New(keys)
		require.NoError(t, err)
		dst, dense := make([]int64, len(src)), make([]int64, len(src))
		index.Map(dst, src, values, other)
		mapid.Dense(dense, src, values, other)
		for i, id := range src {
			require.Equal(t, mapid.Reference(id, keys, values, other), dst[i], "%d", id)
			require.Equal(t, mapid.ReferenceDense(id, values, other), dense[i], "%d", id)
		}
	})
}

func BenchmarkMap(b *testing.B) {
	for name, n := range map[string]int{"100 keys": 100, "100000 keys": 100000} {
		keys, src, dst := make([]int64, n), make([]int64, 2048), make([]int64, 2048)
		for i := range keys {
			keys[i] = int64(i) * 1000003
		}
		for i := range src {
			src[i] = keys[int(uint64(i)*0x9e3779b97f4a7c15>>33)%n] + int64(i&1)
		}
		index, err := mapid.New(keys)
		require.NoError(b, err)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				index.Map(dst, src, keys, 0)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(src)), "ns/value")
		})
		b.Run("dense, "+name, func(b *testing.B) {
			for i := range src {
				src[i] = int64(uint64(i)*0x9e3779b97f4a7c15>>33) % int64(2*n)
			}
			for b.Loop() {
				mapid.Dense(dst, src, keys, 0)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(src)), "ns/value")
		})
	}
}
