package convert

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

func TestPaths(t *testing.T) {
	proving.Picks(t, &int64ToFloat32, "convertGeneric", "int64ToFloat32AVX2", "int64ToFloat32AVX512")
	proving.Picks(t, &int64ToFloat64, "convertGeneric", "int64ToFloat64AVX2", "int64ToFloat64AVX512")
	proving.Picks(t, &float32ToFloat64, "convertGeneric", "float32ToFloat64AVX2", "float32ToFloat64AVX512")
	proving.Picks(t, &float64ToFloat32, "narrowGeneric", "float64ToFloat32AVX2", "float64ToFloat32AVX512")
}

// integer returns the i-th of numbers on ties of either float and beside them, and at the ends of int64.
func integer(i int) int64 {
	r := uint64(i) * 0x9e3779b97f4a7c15
	switch r >> 62 {
	case 0:
		return []int64{0, 1, -1, math.MaxInt64, math.MinInt64, 1<<24 + 1, 1<<24 + 3, -1<<24 - 1, 1<<53 + 1, 1<<53 + 3,
			1<<62 + 1<<38, 1<<62 + 1<<38 + 1,
			1<<62 + 1<<38 - 1, 1<<62 + 1<<9, 1<<62 + 1<<9 + 1, math.MinInt64 + 1<<9}[r>>8&15]
	case 1: // a tie of float32, or one off: 24 bits, a one, and zeros
		return int64(r>>39|1)<<(r>>8&31) + int64(r>>20%3) - 1
	}
	return int64(r*31) >> (r >> 8 & 63)
}

// exactBeforeOthers returns numbers around 2^51. Most vectors hold only numbers below it in magnitude, which the kernel
// of AVX2 converts together; others hold one that is not.
func exactBeforeOthers(i int) int64 {
	switch i % 61 {
	case 59:
		return 1 << 51
	case 60:
		return -1<<51 - 1
	}
	return []int64{1<<51 - 1, -1 << 51, 1<<50 + 1<<26, -1<<50 - 1, 0}[i%5]
}

func float(i int) float64 {
	r := uint64(i) * 0x9e3779b97f4a7c15
	switch r >> 62 {
	case 0:
		return []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(),
			math.Float64frombits(0xfff8000000000123), math.Float64frombits(0x7ff0000000000001),
			math.MaxFloat64, math.MaxFloat32, 0x1.ffffffp127, 0x1.fffffefffffffp127, 0x1p-149, 0x1p-150,
			0x1.0000000000001p-150, 5e-324, -0x1.8p-149}[r>>8&15]
	case 1: // a tie, or one off
		return math.Float64frombits(math.Float64bits(float64(math.Float32frombits(uint32(r>>8)))) + 1<<28 + r>>50%3 - 1)
	}
	return math.Float64frombits(r * 31)
}

// inEveryPlace compares bits with those of want.
func inEveryPlace[D float32 | float64, S int64 | float32 | float64](t *testing.T,
	paths *simd.Paths[func(dst []D, src []S)], of func(i int) S, want func(x S) D) {
	proving.EachLevel(t, func(t *testing.T) {
		proving.Places(t, of, func(dst []D, src []S) {
			paths.Pick()(dst, src)
			for i, x := range src {
				if math.Float64bits(float64(dst[i])) != math.Float64bits(float64(want(x))) {
					require.Equal(t, want(x), dst[i], "value %d of %d: %v", i, len(src), x)
				}
			}
		})
	})
}

func TestEveryPathInEveryPlace(t *testing.T) {
	inEveryPlace(t, &int64ToFloat32, integer, ReferenceFloat32)
	inEveryPlace(t, &int64ToFloat32, exactBeforeOthers, ReferenceFloat32)
	inEveryPlace(t, &int64ToFloat64, integer, func(x int64) float64 { return float64(x) })
	inEveryPlace(t, &float32ToFloat64, func(i int) float32 { return math.Float32frombits(uint32(integer(i))) },
		func(x float32) float64 { return float64(x) })
	inEveryPlace(t, &float64ToFloat32, float, ReferenceFloat32)
}

func TestANaNThatBecomesNarrowerIsOneNaN(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		src, dst := make([]float64, 13), make([]float32, 13)
		for i := range src {
			src[i] = math.Float64frombits([]uint64{0x7ff8000000000000, 0xfff8000000000001, 0x7ff0000000000001,
				0xffffffffffffffff}[i%4])
		}
		Float64ToFloat32(dst, src)
		for _, x := range dst {
			require.Equal(t, uint32(0x7fc00000), math.Float32bits(x))
		}
	})
}

func TestConversionsAllocateNothing(t *testing.T) {
	i, f, d := make([]int64, 100), make([]float32, 100), make([]float64, 100)
	proving.EachLevel(t, func(t *testing.T) {
		require.Zero(t, testing.AllocsPerRun(10, func() {
			Int64ToFloat32(f, i)
			Int64ToFloat64(d, i)
			Float32ToFloat64(d, f)
			Float64ToFloat32(f, d)
		}))
	})
}

func FuzzConvert(f *testing.F) {
	f.Add([]byte("numbers of eight bytes, read as integers and as floats of both widths"))
	f.Fuzz(func(t *testing.T, data []byte) {
		n := len(data) / 8
		ints, wides, narrows := make([]int64, n), make([]float64, n), make([]float32, n)
		for i := range ints {
			ints[i] = int64(binary.LittleEndian.Uint64(data[8*i:]))
			wides[i] = math.Float64frombits(uint64(ints[i]))
			narrows[i] = math.Float32frombits(uint32(ints[i]))
		}
		for _, l := range simd.Levels() {
			func() {
				defer simd.Force(l)()
				f32, f64 := make([]float32, n), make([]float64, n)
				Int64ToFloat32(f32, ints)
				Int64ToFloat64(f64, ints)
				for i, x := range ints {
					require.Equal(t, math.Float32bits(ReferenceFloat32(x)), math.Float32bits(f32[i]), "%d", x)
					require.Equal(t, float64(x), f64[i], "%d", x)
				}
				Float64ToFloat32(f32, wides)
				Float32ToFloat64(f64, narrows)
				for i, x := range wides {
					require.Equal(t, math.Float32bits(ReferenceFloat32(x)), math.Float32bits(f32[i]), "%x", x)
					require.Equal(t, math.Float64bits(float64(narrows[i])), math.Float64bits(f64[i]), "%x", narrows[i])
				}
			}()
		}
	})
}

func BenchmarkConvert(b *testing.B) {
	i, f, d := make([]int64, 2048), make([]float32, 2048), make([]float64, 2048)
	b.Run("int64 to float32", func(b *testing.B) {
		proving.BenchmarkEachLevel(b, len(i), func() { Int64ToFloat32(f, i) })
	})
	large := make([]int64, len(i))
	for k := range large {
		large[k] = int64(k)*0x1e3779b97f4a7c15 | 1<<62
	}
	b.Run("int64 of more than 51 bits to float32", func(b *testing.B) {
		proving.BenchmarkEachLevel(b, len(i), func() { Int64ToFloat32(f, large) })
	})
	b.Run("float64 to float32", func(b *testing.B) {
		proving.BenchmarkEachLevel(b, len(i), func() { Float64ToFloat32(f, d) })
	})
}

// TestWidenInEveryPlace: sources are at any byte address, as values of a page are, and end at the fence.
func TestWidenInEveryPlace(t *testing.T) {
	proving.Picks(t, &int32ToInt64, "signedGeneric", "signedAVX2", "signedAVX512")
	proving.Picks(t, &uint32ToInt64, "unsignedGeneric", "unsignedAVX2", "unsignedAVX512")
	proving.EachLevel(t, func(t *testing.T) {
		fence := proving.NewFence(t, 4*proving.Lengths+64)
		for n := range proving.Lengths {
			signed, unsigned := make([]int64, n), make([]int64, n)
			for _, src := range [][]byte{proving.End[byte](fence, 4*n), proving.Start[byte](fence, n%64, 4*n)} {
				for i := range n {
					binary.LittleEndian.PutUint32(src[4*i:], uint32(i+n)*0x9e3779b1)
				}
				Int32ToInt64(signed, src)
				Uint32ToInt64(unsigned, src)
				for i := range n {
					x := binary.LittleEndian.Uint32(src[4*i:])
					if signed[i] != int64(int32(x)) || unsigned[i] != int64(x) {
						t.Fatalf("value %d of %d: %08x became %d and %d", i, n, x, signed[i], unsigned[i])
					}
				}
			}
		}
	})
}

func FuzzWiden(f *testing.F) {
	f.Add([]byte("numbers of four bytes, signed or not"))
	f.Fuzz(func(t *testing.T, src []byte) {
		n := len(src) / 4
		want, got := make([]int64, n), make([]int64, n)
		signedGeneric(want, src[:4*n])
		Int32ToInt64(got, src)
		require.Equal(t, want, got)
		unsignedGeneric(want, src[:4*n])
		Uint32ToInt64(got, src)
		require.Equal(t, want, got)
	})
}
