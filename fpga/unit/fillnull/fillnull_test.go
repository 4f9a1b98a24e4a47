package fillnull_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/fillnull"
	"github.com/millrace/millrace/fpga/unit/internal/proving"
)

func TestFill(t *testing.T) {
	v := []int64{1, 0, -3, 0}
	fillnull.Int64(v, []byte{1, 0, 1, 1, 0}, 9)
	require.Equal(t, []int64{1, 9, -3, 0}, v, "a 0 that is not a null stays")
	fillnull.Int64(v, nil, 7)
	require.Equal(t, []int64{1, 9, -3, 0}, v, "without validity nothing is null")
	fillnull.Int64(nil, []byte{}, 7)
}

func TestFillKeepsTheBitsOfOthers(t *testing.T) {
	quiet := math.Float32frombits(0xffc00123)
	f := []float32{quiet, 0, float32(math.Copysign(0, -1))}
	fillnull.Float32(f, []byte{1, 0, 1}, 0.5)
	require.Equal(t, uint32(0xffc00123), math.Float32bits(f[0]))
	require.Equal(t, float32(0.5), f[1])
	require.Equal(t, uint32(0x80000000), math.Float32bits(f[2]))
	d := []float64{math.Float64frombits(0x7ff8000000000123), 0}
	fillnull.Float64(d, []byte{1, 0}, math.Inf(1))
	require.Equal(t, uint64(0x7ff8000000000123), math.Float64bits(d[0]))
	require.Equal(t, math.Inf(1), d[1])
}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOf(rapid.Int64()).Draw(t, "v")
		valid := rapid.SliceOfN(rapid.ByteRange(0, 1), len(v), len(v)).Draw(t, "valid")
		fill := rapid.Int64().Draw(t, "fill")
		got := append([]int64(nil), v...)
		narrow, wide := make([]float32, len(v)), make([]float64, len(v))
		for i, x := range v {
			narrow[i], wide[i] = float32(x), float64(x)
		}
		fillnull.Int64(got, valid, fill)
		fillnull.Float32(narrow, valid, float32(fill))
		fillnull.Float64(wide, valid, float64(fill))
		for i, x := range v {
			require.Equal(t, fillnull.Reference(x, valid[i] == 1, fill), got[i])
			require.Equal(t, fillnull.Reference(float32(x), valid[i] == 1, float32(fill)), narrow[i])
			require.Equal(t, fillnull.Reference(float64(x), valid[i] == 1, float64(fill)), wide[i])
		}
	})
}

func BenchmarkFill(b *testing.B) {
	v, f, valid := make([]int64, 2048), make([]float32, 2048), make([]byte, 2048)
	for i := range valid {
		valid[i] = byte(i * 2654435761 >> 16 & 1)
	}
	b.Run("int64", func(b *testing.B) {
		proving.BenchmarkEachLevel(b, len(v), func() { fillnull.Int64(v, valid, 3) })
	})
	b.Run("float32", func(b *testing.B) {
		proving.BenchmarkEachLevel(b, len(f), func() { fillnull.Float32(f, valid, 3) })
	})
}
