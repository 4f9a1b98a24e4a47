package rescale_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/rescale"
)

func TestRescale(t *testing.T) {
	const day = 86400
	for _, c := range []struct {
		name                         string
		x, multiplier, divisor, want int64
	}{
		{"zero", 0, 1, 1000, 0},
		{"below one", 999, 1, 1000, 0},
		{"one", 1000, 1, 1000, 1},
		{"just below zero", -1, 1, 1000, -1},
		{"minus one", -1000, 1, 1000, -1},
		{"below minus one", -1001, 1, 1000, -2},
		{"least", math.MinInt64, 1, day, -106751991167301},
		{"greatest", math.MaxInt64, 1, day, 106751991167300},
		{"least by the greatest", math.MinInt64, 1, math.MaxInt64, -2},
		{"days", -3, day, 1, -3 * day},
		{"greatest days", 106751991167300, day, 1, 106751991167300 * day},
		{"least days", -106751991167300, day, 1, -106751991167300 * day},
		{"same unit", math.MinInt64, 1, 1, math.MinInt64},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := []int64{c.x}
			require.NoError(t, rescale.Rescale(got, got, nil, c.multiplier, c.divisor))
			require.Equal(t, c.want, got[0])
		})
	}
}

func TestProductsOutOfRange(t *testing.T) {
	for _, x := range []int64{math.MaxInt64/86400 + 1, math.MinInt64/86400 - 1, math.MaxInt64, math.MinInt64} {
		src := []int64{1, x}
		err := rescale.Rescale(make([]int64, 2), src, nil, 86400, 1)
		var out *rescale.RangeError
		require.ErrorAs(t, err, &out)
		require.ErrorIs(t, err, rescale.ErrRange)
		assert.Equal(t, rescale.RangeError{Row: 1, Value: x, Multiplier: 86400}, *out)
		assert.NoError(t, rescale.Rescale(make([]int64, 2), src, []byte{1, 0}, 86400, 1), "a null is not an error")
	}
}

func TestFactors(t *testing.T) {
	for _, f := range [][2]int64{{0, 1}, {1, 0}, {-1, 1}, {1, math.MinInt64}, {2, 2}, {math.MaxInt64, 2}} {
		require.ErrorIs(t, rescale.Rescale(nil, nil, nil, f[0], f[1]), rescale.ErrFactors)
	}
	require.NoError(t, rescale.Rescale(nil, nil, nil, math.MaxInt64, 1))
	require.NoError(t, rescale.Rescale(nil, nil, nil, 1, math.MaxInt64))
}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := rapid.SliceOfN(rapid.Int64(), 0, 40).Draw(t, "values")
		multiplier, divisor := int64(1), rapid.Int64Range(1, math.MaxInt64).Draw(t, "factor")
		if rapid.Bool().Draw(t, "multiplied") {
			multiplier, divisor = divisor, 1
		}
		want, fits := make([]int64, len(src)), true
		for i, x := range src {
			var ok bool
			want[i], ok = rescale.Reference(x, multiplier, divisor)
			fits = fits && ok
		}
		got := make([]int64, len(src))
		err := rescale.Rescale(got, src, nil, multiplier, divisor)
		if !fits {
			require.ErrorIs(t, err, rescale.ErrRange)
			return
		}
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}
