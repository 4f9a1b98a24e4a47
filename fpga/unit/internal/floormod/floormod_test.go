package floormod_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/internal/floormod"
)

func floorMod(x, d int64) int64 {
	return new(big.Int).Mod(big.NewInt(x), big.NewInt(d)).Int64()
}

// check tries dividends at both ends of int64 and on both sides of many multiples of d.
func check(t require.TestingT, d int64) {
	v := floormod.New(d)
	try := func(x int64) {
		if got, want := v.Mod(x), floorMod(x, d); got != want {
			require.Equal(t, want, got, "%d mod %d", x, d)
		}
	}
	for _, x := range []int64{0, 1, -1, 2, -2, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, math.MinInt64 + 1} {
		try(x)
	}
	for _, q := range []int64{1, 2, 3, math.MaxInt64 / d, math.MaxInt64/d - 1, math.MaxInt64 / d / 2} {
		for e := int64(-1); e <= 1; e++ {
			try(q*d + e)
			try(-q*d + e)
		}
	}
}

func TestEveryWidthOfDivisor(t *testing.T) {
	for d := int64(2); d < 2000; d++ {
		check(t, d)
	}
	for k := 1; k < 63; k++ {
		for e := int64(-3); e <= 3; e++ {
			if d := int64(1)<<k + e; d >= 2 {
				check(t, d)
			}
		}
	}
	for e := int64(0); e < 20; e++ {
		check(t, math.MaxInt64-e)
	}
}

func TestAnyDivisor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Int64Range(2, math.MaxInt64).Draw(t, "d") >> rapid.IntRange(0, 61).Draw(t, "width")
		d = max(d, 2)
		check(t, d)
		x := rapid.Int64().Draw(t, "x")
		require.Equal(t, floorMod(x, d), floormod.New(d).Mod(x), "%d mod %d", x, d)
	})
}

func TestUnsigned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := max(1, rapid.Int64Range(1, math.MaxInt64).Draw(t, "d")>>rapid.IntRange(0, 62).Draw(t, "width"))
		numbers := []uint64{0, 1, 9, math.MaxInt64, 1 << 63, 1<<63 + 1, math.MaxUint64, rapid.Uint64().Draw(t, "x")}
		for _, q := range []uint64{1, math.MaxInt64 / uint64(d), math.MaxUint64 / uint64(d)} {
			for e := range uint64(3) {
				numbers = append(numbers, q*uint64(d)-1+e)
			}
		}
		src := make([]int64, len(numbers))
		for i, x := range numbers {
			src[i] = int64(x)
		}
		got := make([]int64, len(src))
		floormod.NewUnsigned(d).Reduce(got, src)
		for i, x := range numbers {
			want := new(big.Int).Mod(new(big.Int).SetUint64(x), big.NewInt(d)).Int64()
			require.Equal(t, want, got[i], "%d mod %d", x, d)
		}
		floormod.NewUnsigned(d).Reduce(src, src)
		require.Equal(t, got, src, "in place")
	})
}
