package cast_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/cast"
)

var nan, inf = math.NaN(), math.Inf(1)

// reals are numbers at the ends of int64, fractions, and numbers of every other kind, and what they become.
var reals = []struct {
	x    float64
	want int64
	fits bool
}{
	{0, 0, true}, {math.Copysign(0, -1), 0, true}, {0.999, 0, true}, {-0.999, 0, true}, {1.5, 1, true}, {-1.5, -1, true},
	{2.5, 2, true}, {-2.5, -2, true}, {5e-324, 0, true}, {-1e-310, 0, true}, {1<<53 + 2, 1<<53 + 2, true},
	{16777216, 16777216, true}, {-1 << 63, math.MinInt64, true}, {0x1.fffffffffffffp62, 1<<63 - 1<<10, true},
	{0x1.fffffep62, 1<<63 - 1<<39, true}, {1 << 63, 0, false}, {-0x1.0000000000001p63, 0, false},
	{-0x1.000002p63, 0, false},
	{1e300, 0, false}, {-1e300, 0, false}, {inf, 0, false}, {-inf, 0, false}, {nan, 0, false}, {-nan, 0, false},
}

func TestRealsToIntegers(t *testing.T) {
	for _, c := range reals {
		checkReal(t, c.x)
		got, fits := cast.ReferenceInt64(c.x)
		require.Equal(t, c.fits, fits, "%v", c.x)
		if fits {
			require.Equal(t, c.want, got, "%v", c.x)
		}
	}
}

// checkReal compares the kernels with the reference for one number and for the float32 nearest to it.
func checkReal(t require.TestingT, x float64) {
	checkFloat(t, x)
	checkFloat(t, float32(x))
	bits := []int64{-1}
	cast.Float64Bits(bits, []float64{x})
	require.Equal(t, cast.ReferenceBits(x), bits[0], "%v", x)
}

func checkFloat[F cast.Float](t require.TestingT, x F) {
	want, fits := cast.ReferenceInt64(float64(x))
	dst := []int64{-1, -1}
	err := cast.FloatToInt64(dst, []F{1, x}, nil)
	require.Equal(t, fits, err == nil, "%v: %v", x, err)
	if !fits {
		var at *cast.OverflowError
		require.ErrorAs(t, err, &at)
		require.Equal(t, 1, at.Row)
		require.ErrorIs(t, err, cast.ErrOverflow)
		require.ErrorIs(t, cast.FloatToInt64(dst, []F{1, x}, []byte{0, 1}), cast.ErrOverflow)
		want = 0
	}
	require.NoError(t, cast.FloatToInt64(dst, []F{1, x}, []byte{1, 0}), "a null is not an error")
	valid := []byte{3, 1}
	dst = []int64{-1, -1}
	cast.FloatToInt64OrNull(dst, []F{1, x}, valid)
	require.Equal(t, []int64{1, want}, dst)
	require.Equal(t, fits, valid[1] == 1)
	require.Equal(t, byte(3), valid[0])
}

func TestErrorNamesTheValue(t *testing.T) {
	require.EqualError(t, cast.FloatToInt64(make([]int64, 2), []float32{0, 1e20}, nil), "cast: row 1: 1e+20: not within "+
		"int64: write overflow: as_null, or bound it with clamp or fill_nan before")
	require.ErrorContains(t, cast.CheckUint64([]int64{0, -1}, nil), "cast: row 1: 18446744073709551615: not within int64")
}

// unsigned are integers at ties of both floats and beside them, and at the ends of the types.
var unsigned = []uint64{0, 1, 1<<24 + 1, 1<<24 + 3, 1<<53 + 1, 1<<53 + 3, math.MaxInt64, 1 << 63, 1<<63 + 1,
	1<<63 + 1<<10,
	1<<63 + 1<<10 + 1, 1<<63 + 1<<10 - 1, 1<<63 + 3<<10, 1<<63 + 1<<39, 1<<63 + 1<<39 + 1, 1<<63 + 1<<39 - 1,
	1<<63 + 3<<39, math.MaxUint64, math.MaxUint64 - 1<<10, math.MaxUint64 - 1<<39}

func TestUnsigned(t *testing.T) {
	for _, x := range unsigned {
		checkUnsigned(t, x)
	}
}

// checkUnsigned compares the kernels with the reference for one integer.
func checkUnsigned(t require.TestingT, x uint64) {
	src, fits := []int64{0, int64(x)}, x <= math.MaxInt64
	err := cast.CheckUint64(src, nil)
	require.Equal(t, fits, err == nil, "%d", x)
	if !fits {
		require.ErrorIs(t, err, cast.ErrOverflow)
		require.ErrorIs(t, cast.CheckUint64(src, []byte{0, 1}), cast.ErrOverflow)
	}
	require.NoError(t, cast.CheckUint64(src, []byte{1, 0}), "a null is not an error")
	valid := []byte{3, 1}
	cast.NullUint64(src, valid)
	require.Equal(t, fits, valid[1] == 1, "%d", x)
	require.Equal(t, byte(3), valid[0])
	narrow, wide := make([]float32, 2), make([]float64, 2)
	cast.Uint64ToFloat(narrow, src)
	cast.Uint64ToFloat(wide, src)
	require.Equal(t, cast.ReferenceFloat32(int64(x)), narrow[1], "%d", x)
	require.Equal(t, cast.ReferenceFloat64(int64(x)), wide[1], "%d", x)
	require.Zero(t, narrow[0])
	require.Zero(t, wide[0])
}

// TestEqualNumbersHaveEqualBits compares bits that are written down.
func TestEqualNumbersHaveEqualBits(t *testing.T) {
	src := []float64{0, math.Copysign(0, -1), 1, -1, nan, math.Float64frombits(0xfff8000000000001),
		math.Float64frombits(0x7ff0000000000001), inf, 5e-324}
	got := make([]int64, len(src))
	cast.Float64Bits(got, src)
	require.Equal(t, []int64{0, 0, 0x3ff << 52, -(0x401 << 52), 0x7ff8 << 48, 0x7ff8 << 48, 0x7ff8 << 48, 0x7ff0 << 48, 1},
		got)
}

func FuzzCast(f *testing.F) {
	seed := make([]byte, 0, 8*len(reals))
	for _, c := range reals {
		seed = binary.LittleEndian.AppendUint64(seed, math.Float64bits(c.x))
	}
	for _, x := range unsigned {
		seed = binary.LittleEndian.AppendUint64(seed, x)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		for ; len(data) >= 8; data = data[8:] {
			bits := binary.LittleEndian.Uint64(data)
			checkUnsigned(t, bits)
			checkReal(t, math.Float64frombits(bits))
			checkFloat(t, math.Float32frombits(uint32(bits)))
		}
	})
}

func BenchmarkCast(b *testing.B) {
	const n = 2048
	ints, narrow, wide := make([]int64, n), make([]float32, n), make([]float64, n)
	for i := range wide {
		wide[i], narrow[i] = float64(i)*1.7-900, float32(i)*1.7-900
	}
	valid := make([]byte, n)
	for name, run := range map[string]func(){
		"float32 to int64":         func() { _ = cast.FloatToInt64(ints, narrow, nil) },
		"float64 to int64":         func() { _ = cast.FloatToInt64(ints, wide, nil) },
		"float64 to int64 or null": func() { cast.FloatToInt64OrNull(ints, wide, valid) },
		"uint64 to float32":        func() { cast.Uint64ToFloat(narrow, ints) },
		"float64 to bits":          func() { cast.Float64Bits(ints, wide) },
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				run()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
		})
	}
}
