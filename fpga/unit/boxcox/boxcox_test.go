package boxcox

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
)

// apply1 returns the kernel's result for one value.
func apply1(t require.TestingT, x float32, p Params) float32 {
	f, err := New(p)
	require.NoError(t, err)
	v := []float32{x}
	f.Apply(v, v)
	return v[0]
}

func TestSpecialValues(t *testing.T) {
	f, inf := math.Float32frombits, float32(math.Inf(1))
	rap := func(lambda float32) Params { return Params{Lambda1: lambda, Mode: RAP} }
	for _, c := range []struct {
		name string
		x    float32
		p    Params
		want uint32
	}{
		{"NaN", f(0xffc12345), Params{Lambda1: 1}, 0x7fc00000},
		{"NaN of rap", f(0x7f800001), rap(1), 0x7fc00000},
		{"1", 1, Params{Lambda1: 3}, 0},
		{"1, lambda 0", 1, Params{}, 0},
		{"1, negative lambda", 1, Params{Lambda1: -3}, 0x80000000},
		{"1 by a shift", 0, Params{Lambda1: 3, Lambda2: 1}, 0},
		{"rap below 0", -2.5, rap(2), math.Float32bits(-2.5)},
		{"rap at 0", 0, rap(2), 0},
		{"rap at -0", f(0x80000000), rap(0), 0x80000000},
		{"rap at -Inf", -inf, rap(0), 0xff800000},
		{"+Inf", inf, Params{Lambda1: 0.5}, 0x7f800000},
		{"+Inf, lambda 0", inf, Params{}, 0x7f800000},
		{"+Inf, negative lambda", inf, Params{Lambda1: -4}, math.Float32bits(0.25)},
		{"+Inf, a lambda whose reciprocal is subnormal", inf, Params{Lambda1: -3e38}, 0x00244bfa},
		{"-Inf of caffe2 is clamped", -inf, Params{Lambda1: 1}, math.Float32bits(float32(float64(float32(1e-6)) - 1))},
		{"a sum that overflows", math.MaxFloat32, Params{Lambda1: -1, Lambda2: math.MaxFloat32},
			math.Float32bits(1)},
		{"beyond float32", math.MaxFloat32, rap(2), 0x7f800000},
		{"beyond float32 below", f(1), rap(-1), 0xff800000},
		{"nothing is left of the power", 0.5, rap(1 << 20), math.Float32bits(-1. / (1 << 20))},
		{"lambda 1 subtracts 1", 16777217, rap(1), math.Float32bits(16777215)},
		{"the sum is rounded first", 16777216, Params{Lambda1: 1, Lambda2: 1}, math.Float32bits(16777215)},
		{"squares", 3, rap(2), math.Float32bits(4)},
		{"roots", 9, rap(0.5), math.Float32bits(4)},
		// Ties: (4098^2-1)/2 = 8396801.5 lies between 8396801 and 8396802, (4100^2-1)/2 = 8404999.5 likewise.
		{"a tie to the even number above", 4098, rap(2), math.Float32bits(8396802)},
		{"a tie to another even number above", 4100, rap(2), math.Float32bits(8405000)},
		{"a tie of a shift", 4097, Params{Lambda1: 2, Lambda2: 1}, math.Float32bits(8396802)},
		{"a tie of lambda 1", 0x1p24 + 2, rap(1), math.Float32bits(0x1p24)},
		{"just below a tie of lambda 1", 0x1p25 + 4, rap(1), math.Float32bits(0x1p25 + 4)},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, fmt.Sprintf("%08x", c.want), fmt.Sprintf("%08x", math.Float32bits(apply1(t, c.x, c.p))))
			assert.Equal(t, fmt.Sprintf("%08x", c.want), fmt.Sprintf("%08x", math.Float32bits(Reference(c.x, c.p))))
		})
	}
}

func TestParams(t *testing.T) {
	inf, none := float32(math.Inf(1)), float32(math.NaN())
	for _, p := range []Params{
		{Lambda1: inf}, {Lambda1: -inf}, {Lambda1: none}, {Lambda2: inf}, {Lambda2: none}, {Mode: 2},
		{Lambda2: 1, Mode: RAP},
	} {
		_, err := New(p)
		require.ErrorIs(t, err, ErrParams, "%+v", p)
	}
	_, err := New(Params{Lambda1: math.MaxFloat32, Lambda2: -math.MaxFloat32})
	require.NoError(t, err)
}

var lambdas = []float32{0, 1, -1, 2, -2, 3, 4, 0.5, -0.5, 0.25, 0.75, 1.5, 0.1, 0.3, 1e-3, -1e-3, 1e-10, 1e-40, -1e-40,
	100, -100, 1e6, 3e38, -3e38, 1. / 128, 1. / 256}

func TestKernelEqualsReference(t *testing.T) {
	bits := rapid.Map(rapid.Uint32(), math.Float32frombits)
	finite := bits.Filter(func(x float32) bool { return x-x == 0 })
	value := rapid.OneOf(bits, rapid.Float32Range(0, 2), rapid.Float32Range(0.99, 1.01), rapid.Float32Range(0, 1e4),
		rapid.Map(rapid.IntRange(0, 10000), func(n int) float32 { return float32(n) }))
	rapid.Check(t, func(t *rapid.T) {
		p := Params{
			Lambda1: rapid.OneOf(rapid.SampledFrom(lambdas), rapid.Float32Range(-3, 3), finite).Draw(t, "lambda1"),
			Mode:    rapid.SampledFrom([]Mode{Caffe2, RAP}).Draw(t, "mode"),
		}
		if p.Mode == Caffe2 {
			p.Lambda2 = rapid.OneOf(rapid.SampledFrom([]float32{0, 1, 0.5}), finite).Draw(t, "lambda2")
		}
		src := rapid.SliceOfN(value, 0, 12).Draw(t, "src")
		f, err := New(p)
		require.NoError(t, err)
		dst := make([]float32, len(src)+1)
		dst[len(src)] = 77
		f.Apply(dst, src)
		for i, x := range src {
			require.Equal(t, math.Float32bits(Reference(x, p)), math.Float32bits(dst[i]), "%x, %+v", x, p)
		}
		require.Equal(t, float32(77), dst[len(src)])
		f.Apply(src, src)
		for i := range src {
			require.Equal(t, math.Float32bits(dst[i]), math.Float32bits(src[i]), "in place")
		}
	})
}

// TestIntegersAndNearOne takes every integer of a range in which results are ties with lambda 2, 1.5 and 0.5, and
// small numbers around 1.
func TestIntegersAndNearOne(t *testing.T) {
	for _, lambda := range []float32{2, 1.5, 0.5, 1, -1, 3} {
		p := Params{Lambda1: lambda, Mode: RAP}
		for n := 4090; n < 4200; n++ {
			require.Equal(t, Reference(float32(n), p), apply1(t, float32(n), p), "%d, lambda %v", n, lambda)
			square := float32(n) * float32(n)
			require.Equal(t, Reference(square, p), apply1(t, square, p), "%v, lambda %v", square, lambda)
		}
		x := float32(1)
		for range 50 {
			x = math.Nextafter32(x, 0)
		}
		for range 100 {
			require.Equal(t, Reference(x, p), apply1(t, x, p), "%x, lambda %v", x, lambda)
			x = math.Nextafter32(x, 2)
		}
	}
}

// TestHardEqualsReference takes the hard path for values that the fast path decides.
func TestHardEqualsReference(t *testing.T) {
	for _, lambda := range lambdas[1:] {
		p := newPower(lambda)
		for bits := uint32(1); bits < 0x7f800000; bits += 31000019 {
			x := math.Float32frombits(bits)
			require.Equal(t, math.Float32bits(Reference(x, Params{Lambda1: lambda, Mode: RAP})),
				math.Float32bits(p.hard(x)), "%x, lambda %x", x, lambda)
		}
	}
}

func TestIsMiddle(t *testing.T) {
	for _, c := range []struct {
		lambda, t float32
		value     float64
		want      bool
	}{
		{2, 4098, 8396801.5, true}, {2, 4098, 8396802, false}, {0.5, 9, 4, true}, {0.5, 8, 4, false},
		{-1, 2, 0.5, true}, {-1, 3, 2. / 3, false}, {-2, 0.5, -1.5, true}, {1.5, 4, 14. / 3, false},
		{0.75, 16, 28. / 3, false}, {0.75, 0x1p-40, -1.3333333, false}, {1, 5, 4, true}, {3, 2, 7. / 3, false},
		{4, 3, 20, true}, {1. / 128, 0x1p-128, -64, true}, {1. / 256, 2, 1, false}, {1 << 30, 3, 1, false},
		{-0.5, 9, 4. / 3, false}, {0.1, 3, 1, false}, {2, 3, -1, false},
	} {
		p := newPower(c.lambda)
		assert.Equal(t, c.want, p.isMiddle(c.t, c.value), "%v^%v", c.t, c.lambda)
	}
}

// TestExceeds checks the code that only a result nearer than 2^-80 to a middle reaches. Here the side must be right
// for values anywhere.
func TestExceeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lambda := rapid.SampledFrom(lambdas[1:17]).Draw(t, "lambda")
		x := rapid.Float32Range(1e-3, 1e3).Filter(func(x float32) bool { return x != 1 }).Draw(t, "x")
		p := newPower(lambda)
		value := p.pairPower(x).Hi
		require.True(t, p.exceeds(x, math.Nextafter(value, math.Inf(-1))), "%x, lambda %x", x, lambda)
		require.False(t, p.exceeds(x, math.Nextafter(value, math.Inf(1))), "%x, lambda %x", x, lambda)
	})
	p := newPower(2)
	require.True(t, p.exceeds(0.001, -0.5), "the power is above 0")
	p = newPower(-2)
	require.False(t, p.exceeds(1e20, 0.5), "the power is above 0")
}

func TestTiesToEven(t *testing.T) {
	for name, c := range map[string]struct {
		nearest float32
		middle  float64
		decided bool
		want    float32
	}{
		"decided, and odd":      {1<<23 + 1, 1<<23 + 1.5, true, 1<<23 + 1},
		"even":                  {1 << 23, 1<<23 + 0.5, false, 1 << 23},
		"odd, below the middle": {1<<23 + 1, 1<<23 + 1.5, false, 1<<23 + 2},
		"odd, above the middle": {1<<23 + 1, 1<<23 + 0.5, false, 1 << 23},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, tiesToEven(c.nearest, c.middle, c.decided)) })
	}
}

func BenchmarkApply(b *testing.B) {
	for _, lambda := range []float32{0, 0.5, 0.3, 2} {
		b.Run(fmt.Sprint(lambda), func(b *testing.B) {
			f, err := New(Params{Lambda1: lambda})
			if err != nil {
				b.Fatal(err)
			}
			proving.BenchmarkFloats(b, func(i int) float32 { return float32(4096 + i) }, f.Apply)
		})
	}
}
