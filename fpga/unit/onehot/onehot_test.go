package onehot_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/onehot"
)

func TestClassesOutOfRange(t *testing.T) {
	for _, n := range []int64{0, -1, onehot.MaxCount + 1, math.MaxInt64} {
		_, err := onehot.New(n)
		require.ErrorIs(t, err, onehot.ErrCount)
		_, err = onehot.NewRanges(n, 0, 1)
		require.ErrorIs(t, err, onehot.ErrCount)
	}
	for _, n := range []int64{1, onehot.MaxCount} {
		_, err := onehot.New(n)
		require.NoError(t, err)
	}
	infinite, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, bounds := range [][2]float32{{1, 1}, {2, 1}, {0, infinite}, {-infinite, 0}, {nan, 1}, {0, nan},
		{-math.MaxFloat32, math.MaxFloat32}, {0, 0x1p-149}} {
		_, err := onehot.NewRanges(4, bounds[0], bounds[1])
		require.ErrorIs(t, err, onehot.ErrRange, bounds)
	}
}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(1, 9), rapid.IntRange(1, onehot.MaxCount)).Draw(t, "classes")
		classes, err := onehot.New(int64(n))
		require.NoError(t, err)
		ids := rapid.SliceOf(rapid.OneOf(rapid.Int64Range(-2, 10), rapid.Int64Range(0, onehot.MaxCount),
			rapid.Int64())).Draw(t, "ids")
		got := make([]int64, len(ids))
		classes.IDs(got, ids)
		for i, id := range ids {
			require.Equal(t, onehot.Reference(id, n), got[i])
		}
		classes.IDs(ids, ids)
		require.Equal(t, got, ids)

		lower, upper := rapid.Float32().Draw(t, "lower"), rapid.Float32().Draw(t, "upper")
		ranges, err := onehot.NewRanges(int64(n), lower, upper)
		if err != nil {
			lower, upper = -1, 3
			ranges, err = onehot.NewRanges(int64(n), lower, upper)
			require.NoError(t, err)
		}
		x := rapid.SliceOf(rapid.OneOf(rapid.Float32Range(lower, upper), rapid.Float32Range(-2, 4), rapid.Float32(),
			rapid.SampledFrom([]float32{lower, upper, float32(math.NaN()), float32(math.Inf(1)),
				float32(math.Inf(-1))}))).Draw(t, "x")
		got = make([]int64, len(x))
		ranges.Ranges(got, x)
		for i, v := range x {
			require.Equal(t, onehot.ReferenceRange(v, lower, upper, n), got[i], v)
		}
	})
}
