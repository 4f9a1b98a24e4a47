package logn

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

// log1 returns the kernel's result for one value, in every lane of every path.
func log1(t require.TestingT, x, add float32) float32 {
	src, dst := make([]float32, 43), make([]float32, 43) // a main loop, a smaller one and a tail
	for i := range src {
		src[i] = x
	}
	for _, l := range simd.Levels() {
		restore := simd.Force(l)
		logUnclamped(dst, src, add)
		restore()
		for i := range dst {
			if math.Float32bits(dst[i]) != math.Float32bits(dst[0]) ||
				math.Float32bits(dst[0]) != math.Float32bits(log0(x, add)) {
				require.Equal(t, math.Float32bits(log0(x, add)), math.Float32bits(dst[i]), "%v, lane %d: %x + %x", l, i,
					x, add)
			}
		}
	}
	return dst[0]
}

func log0(x, add float32) float32 {
	dst := []float32{0}
	logGeneric(dst, []float32{x}, add, float32(math.Inf(-1)), float32(math.Inf(1)))
	return dst[0]
}

func TestSpecialValues(t *testing.T) {
	f, inf := math.Float32frombits, float32(math.Inf(1))
	for _, c := range []struct {
		name   string
		x, add float32
		want   uint32
	}{
		{"0", 0, 0, 0xff800000},
		{"-0", f(0x80000000), 0, 0xff800000},
		{"-0 - 0", f(0x80000000), f(0x80000000), 0xff800000},
		{"-1 + 1", -1, 1, 0xff800000},
		{"+Inf", inf, 0, 0x7f800000},
		{"+Inf + 1", inf, 1, 0x7f800000},
		{"overflow of the sum", math.MaxFloat32, math.MaxFloat32, 0x7f800000},
		{"-Inf", -inf, 0, 0x7fc00000},
		{"Inf - Inf", inf, -inf, 0x7fc00000},
		{"-1", -1, 0, 0x7fc00000},
		{"-2 + 1", -2, 1, 0x7fc00000},
		{"smallest below 0", f(0x80000001), 0, 0x7fc00000},
		{"NaN", f(0x7fc00000), 1, 0x7fc00000},
		{"NaN with a sign", f(0xffc00000), 1, 0x7fc00000},
		{"NaN with a payload", f(0x7fc12345), 0, 0x7fc00000},
		{"signalling NaN", f(0x7f800001), 0, 0x7fc00000},
		{"NaN added", 1, f(0xffffffff), 0x7fc00000},
		{"1", 1, 0, 0},
		{"0 + 1", 0, 1, 0},
		{"e", math.E, 0, 0x3f7fffff},
		{"largest", math.MaxFloat32, 0, 0x42b17218},
		{"smallest", f(1), 0, 0xc2ce8ed0},
		{"the sum rounds to even: 2^24 + 1", 1 << 24, 1, math.Float32bits(Reference(1<<24, 0))},
		{"the sum is rounded before the logarithm", 16777217, 2, math.Float32bits(Reference(16777218, 0))},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, fmt.Sprintf("%08x", c.want), fmt.Sprintf("%08x", math.Float32bits(log1(t, c.x, c.add))))
			assert.Equal(t, fmt.Sprintf("%08x", c.want), fmt.Sprintf("%08x", math.Float32bits(Reference(c.x, c.add))))
		})
	}
}

// The five float32 whose float64 logarithm rounds the wrong way (golden/log.json): the fast path must hand them over.
func TestHardInputs(t *testing.T) {
	for bits, want := range map[uint32]uint32{
		0x3c413d3a: 0xc08e158f, 0x41178feb: 0x400fe5e7, 0x4c5d65a5: 0x418f034b, 0x65d890d3: 0x4254d1f9,
		0x6f31a8ec: 0x42845a89,
	} {
		for d := -2; d <= 2; d++ {
			x := math.Float32frombits(bits + uint32(d))
			require.Equal(t, Reference(x, 0), log1(t, x, 0), "%08x", bits+uint32(d))
		}
		x := math.Float32frombits(bits)
		require.Equal(t, want, math.Float32bits(log1(t, x, 0)), "%08x", bits)
		require.Equal(t, want, math.Float32bits(float32(hard(x))), "%08x", bits)
	}
}

func TestAroundPowersOfTwo(t *testing.T) {
	for k := -149; k <= 127; k++ {
		p := float32(math.Ldexp(1, k))
		for _, x := range []float32{p, math.Nextafter32(p, 0), math.Nextafter32(p, math.MaxFloat32)} {
			require.Equal(t, math.Float32bits(Reference(x, 0)), math.Float32bits(log1(t, x, 0)), "2^%d: %x", k, x)
		}
	}
}

// The table's intervals meet at these: both sides of each, in three binades.
func TestAroundTheTablesEdges(t *testing.T) {
	for i := range uint64(1<<tableBits + 1) {
		edge := float32(math.Float64frombits(tableBegin + i<<(52-tableBits)))
		for _, scale := range []float32{1, 1 << 20, 1. / (1 << 130)} {
			for _, x := range []float32{edge * scale, math.Nextafter32(edge*scale, 0),
				math.Nextafter32(edge*scale, 1e38)} {
				require.Equal(t, math.Float32bits(Reference(x, 0)), math.Float32bits(log1(t, x, 0)), "%x", x)
			}
		}
	}
}

// Small integers plus a constant are what pipelines feed it.
func TestSmallIntegers(t *testing.T) {
	for _, add := range []float32{1, 3} {
		for i := range 3000 {
			require.Equal(t, Reference(float32(i), add), log1(t, float32(i), add), "%d + %v", i, add)
		}
	}
}

func TestKernelEqualsReference(t *testing.T) {
	bits := rapid.Map(rapid.Uint32(), math.Float32frombits)
	proving.EachLevel(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			src := rapid.SliceOfN(rapid.OneOf(bits, rapid.Float32Range(0, 2), rapid.Float32Min(0)), 0, 40).Draw(t,
				"src")
			add := rapid.OneOf(bits, rapid.SampledFrom([]float32{0, 1, 2, 3})).Draw(t, "add")
			dst := make([]float32, len(src)+1)
			dst[len(src)] = 77
			logUnclamped(dst, src, add)
			for i, x := range src {
				require.Equal(t, math.Float32bits(Reference(x, add)), math.Float32bits(dst[i]), "%x + %x", x, add)
			}
			require.Equal(t, float32(77), dst[len(src)])
			logUnclamped(src, src, add)
			for i := range src {
				require.Equal(t, math.Float32bits(dst[i]), math.Float32bits(src[i]), "in place")
			}
		})
	})
}

// pairLog must be as good as its doc says also where nothing hangs on it.
func TestPairLogIsGoodTo90Bits(t *testing.T) {
	check := func(y float32) {
		got, want := pairLog(y), bigLog(float64(y))
		if want.Sign() == 0 {
			require.Equal(t, pair{}, got)
			return
		}
		sum := newBig().SetFloat64(got.hi)
		sum.Add(sum, newBig().SetFloat64(got.lo))
		miss, _ := sum.Sub(sum, want).Quo(sum, want).Float64()
		require.Less(t, math.Abs(miss), math.Ldexp(1, -90), "%x", y)
	}
	for bits := uint32(1); bits < 0x7f800000; bits += 3000017 {
		check(math.Float32frombits(bits))
	}
	for bits := uint32(0x3f7f0000); bits < 0x3f810000; bits += 257 {
		check(math.Float32frombits(bits))
	}
	check(1)
}

// The generated table, by the package's other arithmetic.
func TestTable(t *testing.T) {
	near := func(want *big.Float, hi, lo float64, name string) {
		h, _ := want.Float64()
		require.Equal(t, h, hi, name)
		l, _ := newBig().Sub(want, newBig().SetFloat64(h)).Float64()
		require.Equal(t, l, lo, name)
	}
	near(bigLog(2), ln2, ln2Low, "ln 2")
	for i, e := range table {
		from := math.Float64frombits(tableBegin + uint64(i)<<(52-tableBits))
		to := math.Float64frombits(tableBegin + uint64(i+1)<<(52-tableBits))
		name := fmt.Sprintf("entry %d, [%v, %v)", i, from, to)
		require.Zero(t, math.Float64bits(e.inverse)&(1<<24-1), "%s: 29 bits", name)
		require.LessOrEqual(t, math.Abs(from*e.inverse-1), 1./256, name)
		require.LessOrEqual(t, math.Abs(to*e.inverse-1), 1./256, name)
		if from == 1 || to == 1 {
			require.Equal(t, 1., e.inverse, name)
			require.Zero(t, e.log)
			require.Zero(t, tableLow[i])
			continue
		}
		near(newBig().Neg(bigLogOf(e.inverse)), e.log, tableLow[i], name)
	}
}

// The table of AVX-512, likewise.
func TestVectorTable(t *testing.T) {
	for i, inverse := range vectorTable[0] {
		from := math.Float64frombits(vectorBegin + uint64(i)<<48)
		to := math.Float64frombits(vectorBegin + uint64(i+1)<<48)
		name := fmt.Sprintf("entry %d, [%v, %v)", i, from, to)
		require.Zero(t, math.Float64bits(inverse)&(1<<24-1), "%s: 29 bits", name)
		require.LessOrEqual(t, math.Abs(from*inverse-1), 1./32, name)
		require.LessOrEqual(t, math.Abs(to*inverse-1), 1./32, name)
		if from < 1 && 1 < to {
			require.Equal(t, 1., inverse, name)
			require.Zero(t, vectorTable[1][i])
			continue
		}
		want, _ := newBig().Neg(bigLogOf(inverse)).Float64()
		require.Equal(t, want, vectorTable[1][i], name)
	}
}

func BenchmarkLog(b *testing.B) {
	src, dst := make([]float32, 2048), make([]float32, 2048)
	for name, f := range map[string]func(i int) float32{
		"small integers": func(i int) float32 { return float32(i * 7 % 100) },
		"all magnitudes": func(i int) float32 { return math.Float32frombits(uint32(i) * 1044000) },
	} {
		for i := range src {
			src[i] = f(i)
		}
		b.Run(name, func(b *testing.B) { proving.BenchmarkEachLevel(b, len(src), func() { logUnclamped(dst, src, 1) }) })
	}
}

func BenchmarkHard(b *testing.B) {
	for b.Loop() {
		_ = hard(1234.5)
	}
}

// logUnclamped is LogClamped with bounds that clamp nothing.
func logUnclamped(dst, src []float32, add float32) {
	LogClamped(dst, src, add, float32(math.Inf(-1)), float32(math.Inf(1)))
}
