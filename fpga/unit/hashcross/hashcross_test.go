package hashcross_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/hashcross"
)

func TestBucketsOutOfRange(t *testing.T) {
	for _, n := range []int64{0, -1, math.MinInt64} {
		_, err := hashcross.New(n)
		require.ErrorIs(t, err, hashcross.ErrBuckets)
	}
	for _, n := range []int64{1, math.MaxInt64} {
		_, err := hashcross.New(n)
		require.NoError(t, err)
	}
}

func TestNoColumns(t *testing.T) {
	h, err := hashcross.New(5)
	require.NoError(t, err)
	dst := []int64{7, 7}
	h.Cross(dst, nil)
	require.Equal(t, []int64{0, 0}, dst)
}

// edgeBuckets are numbers of buckets whose remainders go wrong first.
var edgeBuckets = []int64{1, 2, 3, 1000, 1 << 31, 1<<62 - 1, 1 << 62, 1<<62 + 1, math.MaxInt64 - 1, math.MaxInt64}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.SampledFrom(edgeBuckets), rapid.Int64Range(1, math.MaxInt64)).Draw(t, "buckets")
		h, err := hashcross.New(n)
		require.NoError(t, err)
		rows := rapid.IntRange(0, 40).Draw(t, "rows")
		columns := make([][]int64, rapid.IntRange(1, 8).Draw(t, "columns"))
		for i := range columns {
			columns[i] = rapid.SliceOfN(rapid.Int64(), rows, rows).Draw(t, "ids")
		}
		want := make([]int64, rows)
		single := make([]int64, rows)
		for row := range want {
			var ids []int64
			for _, column := range columns {
				ids = append(ids, column[row])
			}
			want[row] = hashcross.Reference(ids, n)
			single[row] = hashcross.Reference(ids[:1], n)
			require.GreaterOrEqual(t, want[row], int64(0))
			require.Less(t, want[row], n)
		}
		got := slices.Clone(columns[0])
		h.Buckets(got, got)
		require.Equal(t, single, got)
		h.Cross(got, columns)
		require.Equal(t, want, got)
		h.Cross(columns[0], columns) // in place
		require.Equal(t, want, columns[0])
	})
}

func BenchmarkCross(b *testing.B) {
	columns := [][]int64{make([]int64, 4096), make([]int64, 4096)}
	for i := range columns[0] {
		columns[0][i], columns[1][i] = int64(i), int64(3*i)
	}
	h, err := hashcross.New(500_000)
	require.NoError(b, err)
	dst := make([]int64, 4096)
	for b.Loop() {
		h.Cross(dst, columns)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/4096, "ns/row")
}
