package floatpair

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/internal/bigreal"
)

// exact returns a pair's value.
func exact(p Pair) *big.Float {
	return bigreal.New().Add(bigreal.Of(p.Hi), bigreal.Of(p.Lo))
}

// miss returns the error of got relative to want, as the exponent of a power of two; -Inf if they are equal.
func miss(got Pair, want *big.Float) float64 {
	d := bigreal.New().Sub(exact(got), want)
	if d.Sign() == 0 {
		return math.Inf(-1)
	}
	d.Quo(d, want)
	x, _ := d.Float64()
	return math.Log2(math.Abs(x))
}

func TestPairsAreGood(t *testing.T) {
	number := rapid.Custom(func(t *rapid.T) Pair {
		hi := math.Ldexp(rapid.Float64Range(1, 2).Draw(t, "mantissa"), rapid.IntRange(-40, 40).Draw(t, "exponent"))
		return normal(hi, hi*rapid.Float64Range(-0x1p-54, 0x1p-54).Draw(t, "low"))
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		x, y := exact(a), exact(b)
		require.Less(t, miss(a.Plus(b), bigreal.New().Add(x, y)), -100., "sum")
		require.Less(t, miss(a.Times(b), bigreal.New().Mul(x, y)), -100., "product")
		require.Less(t, miss(a.Scaled(b.Hi), bigreal.New().Mul(x, bigreal.Of(b.Hi))), -100., "product of a float64")
		require.Less(t, miss(a.Over(b), bigreal.New().Quo(x, y)), -100., "quotient")
		require.Less(t, miss(Quotient(a.Hi, b.Hi), bigreal.New().Quo(bigreal.Of(a.Hi), bigreal.Of(b.Hi))), -100.,
			"quotient of float64")
		require.Equal(t, 0, exact(Sum(a.Hi, -b.Hi)).Cmp(bigreal.New().Sub(bigreal.Of(a.Hi), bigreal.Of(b.Hi))))
	})
}

func TestFunctionsAreGood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := math.Ldexp(rapid.Float64Range(0.5, 1).Draw(t, "x"), rapid.IntRange(-160, 160).Draw(t, "exponent"))
		if x != 1 {
			require.Less(t, miss(Log(Pair{x, 0}), bigreal.Ln(bigreal.Of(x))), -92., "ln %x", x)
		}
		y := rapid.Float64Range(-200, 200).Draw(t, "y") * math.Ldexp(1, -rapid.IntRange(0, 60).Draw(t, "small"))
		if math.Abs(y) > 0x1p-100 { // else math/big's difference loses too much
			want := bigreal.New().Sub(bigreal.Exp(bigreal.Of(y)), bigreal.Of(1))
			require.Less(t, miss(Expm1(Pair{y, 0}), want), -85., "e^%x - 1", y)
		}
	})
	require.Equal(t, Pair{}, Log(Pair{1, 0}))
}

func TestRound32(t *testing.T) {
	one, next := float32(1), math.Nextafter32(1, 2)
	middle := (1 + float64(next)) / 2
	for name, c := range map[string]struct {
		p       Pair
		want    float32
		decided bool
	}{
		"the middle":              {Pair{middle, 0}, one, false},
		"just below":              {Pair{middle, -0x1p-80}, one, true},
		"just above":              {Pair{middle, 0x1p-80}, next, true},
		"too near below":          {Pair{middle, -0x1p-95}, one, false},
		"exact":                   {Pair{1, 0}, one, true},
		"exact and low":           {Pair{1, -0x1p-60}, one, true},
		"below a power of two":    {Pair{1 - 0x1p-26, 0}, one, true},
		"further below a power":   {Pair{1 - 0x1.8p-25, 0}, math.Nextafter32(1, 0), true},
		"negative, away from 0":   {Pair{-middle, -0x1p-80}, -next, true},
		"negative, towards 0":     {Pair{-middle, 0x1p-80}, -one, true},
		"subnormal middle, below": {Pair{0x1.8p-149, -0x1p-230}, 0x1p-149, true},
		"subnormal middle, above": {Pair{0x1.8p-149, 0x1p-229}, 0x1p-148, true},
		"beyond":                  {Pair{0x1p128, 0}, float32(math.Inf(1)), true},
		"nearly beyond":           {Pair{0x1.ffffffp127, 0x1p60}, float32(math.Inf(1)), true},
		"not yet beyond":          {Pair{0x1.ffffffp127, -0x1p60}, math.MaxFloat32, true},
		"negative beyond":         {Pair{-0x1.ffffffp127, -0x1p60}, float32(math.Inf(-1)), true},
	} {
		got, at, decided := c.p.Round32(0x1p-90)
		require.Equal(t, c.decided, decided, name)
		if decided {
			require.Equal(t, c.want, got, name)
		} else {
			require.Equal(t, middle, at, name)
		}
	}
}
