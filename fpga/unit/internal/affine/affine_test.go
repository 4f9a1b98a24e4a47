package affine

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// exactly is the definition in rational numbers.
func exactly(x float32, a, plus, minus float64) float32 {
	rat := func(v float64) *big.Rat { return new(big.Rat).SetFloat64(v) }
	q := rat(float64(x))
	q.Sub(q, rat(a))
	b := rat(plus)
	q.Quo(q, b.Sub(b, rat(minus)))
	nearest, _ := q.Float32()
	return nearest
}

func same(t require.TestingT, x float32, a, plus, minus float64) {
	m, got := New(a, plus, minus), []float32{x}
	m.Apply(got, got)
	want := exactly(x, a, plus, minus)
	require.Equal(t, math.Float32bits(want), math.Float32bits(got[0]), "(%v - %v) / (%v - %v): want %v, got %v", x, a,
		plus, minus, want, got[0])
}

// Quotients that lie in the middle between two float32 numbers, or a little beside it, cannot be decided in float64.
func TestMiddles(t *testing.T) {
	for _, c := range []struct {
		x              float32
		a, plus, minus float64
	}{
		{1 << 23, 0.5, 1, 0}, {1<<23 + 1, 0.5, 1, 0}, {1 << 23, -0.5, 4, 0}, {1<<23 + 1, -0.5, 4, 0}, // ties
		{3, 0.5 - 0x1p-54, 1, 0},
		{1 << 23, 0.5 + 0x1p-53, 1, 0}, {1 << 23, 0.5 - 0x1p-54, 1, 0}, // beside a tie, by less than a float64 has
		{1<<23 + 1, 0.5 - 0x1p-54, 1, 0}, {1<<23 + 2, 0.5 + 0x1p-53, 1, 0},
		{1<<24 - 1, 0x1p-60, 2, 0}, {1<<24 - 1, -0x1p-60, 2, 0},
		{1<<24 - 1, 0, 2, 0x1p-70}, {1<<24 - 1, 0, 2, -0x1p-70},
		{math.MaxFloat32, 0, 1, 0x1p-26}, {math.MaxFloat32, 0, 1 - 0x1p-25, 0}, {math.MaxFloat32, 0, 1, 0x1p-25}, // overflow
		{-math.MaxFloat32, 0, 1, 0x1p-25}, {-math.MaxFloat32, 0x1p100, 1, 0},
		{math.SmallestNonzeroFloat32, 0, 2, 0}, {math.SmallestNonzeroFloat32, 0, 2, 0x1p-80}, // underflow
		{-math.SmallestNonzeroFloat32, 0, 2, 0}, {3 * math.SmallestNonzeroFloat32, 0, 2, 0},
		{-math.SmallestNonzeroFloat32, 0, math.MaxFloat32, 0}, {5, 5, 3, 0}, {0, 0, 3, 0}, {float32(math.Copysign(0, -1)),
			0, 3, 0},
		{0x1p76, -(1<<52 + 1<<24 + 1), 1<<52 + 1, 0}, // a tie, whose difference has more bits than a float64
	} {
		same(t, c.x, c.a, c.plus, c.minus)
		same(t, -c.x, -c.a, c.plus, c.minus)
	}
}

func TestNotNumbers(t *testing.T) {
	m := New(1, 2, 0)
	inf := float32(math.Inf(1))
	got := []float32{math.Float32frombits(0xffc12345), inf, -inf}
	m.Apply(got, got)
	require.Equal(t, uint32(0x7fc00000), math.Float32bits(got[0]))
	require.Equal(t, []float32{inf, -inf}, got[1:])
}

// constant draws 0 or a number in the range of normal float32 numbers.
func constant(t *rapid.T, name string) float64 {
	mantissa := 1 + float64(rapid.Uint64Range(0, 1<<52-1).Draw(t, name))*0x1p-52
	if rapid.Bool().Draw(t, name+" of few bits") {
		mantissa = 1 + float64(rapid.IntRange(0, 15).Draw(t, name+" bits"))/16
	}
	x := math.Ldexp(mantissa, rapid.OneOf(rapid.IntRange(-6, 6), rapid.IntRange(-126, 126)).Draw(t, name+" exponent"))
	return x * float64(rapid.IntRange(-1, 1).Draw(t, name+" sign"))
}

func TestKernelIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, plus, minus := constant(t, "a"), constant(t, "plus"), constant(t, "minus")
		if plus == minus {
			plus++
		}
		if plus < minus {
			plus, minus = minus, plus
		}
		x := rapid.OneOf(rapid.Float32(), rapid.Custom(func(t *rapid.T) float32 {
			return float32(rapid.IntRange(-1<<25, 1<<25).Draw(t, "whole"))
		})).Draw(t, "x")
		same(t, x, a, plus, minus)
		// A number whose quotient is about the middle between two float32 numbers.
		f := rapid.Float32Range(-1e6, 1e6).Draw(t, "result")
		middle := (float64(f) + float64(math.Nextafter32(f, 2e6))) / 2
		if y := float32(middle*(plus-minus) + a); !math.IsInf(float64(y), 0) && y == y {
			same(t, y, a, plus, minus)
		}
	})
}
