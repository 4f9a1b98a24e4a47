package logn

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
)

func TestPaths(t *testing.T) {
	proving.Picks(t, &log, "logGeneric", "logAVX2", "logAVX512")
}

// value returns the i-th of a mixture that has every kind of lane next to every other: ordinary values, those that Ziv's
// test stops at, and special ones.
func value(i int) float32 {
	f := math.Float32frombits
	r := uint32(i) * 2654435761
	switch r >> 29 {
	case 0:
		return []float32{0, f(0x80000000), f(1), f(0x007fffff), f(0x00800000), f(0x807fffff), f(0x7f7fffff), f(0x7f800000),
			f(0xff800000), f(0x7fc00000), f(0xffc12345), f(0x7f800001), 1, -1, f(0x3f7fffff), f(0x3f800001)}[r>>4&15]
	case 1:
		return f([]uint32{0x3c413d3a, 0x41178feb, 0x4c5d65a5, 0x65d890d3, 0x6f31a8ec}[r>>8%5])
	case 2:
		return f(r * 97)
	case 3:
		return float32(r >> 4 & 0xfff)
	}
	return f(0x3f000000 + r>>6&0xffffff)
}

func same(t require.TestingT, want, got []float32, src []float32, add float32) {
	for i, x := range src {
		if math.Float32bits(want[i]) != math.Float32bits(got[i]) {
			require.Equal(t, math.Float32bits(want[i]), math.Float32bits(got[i]), "value %d of %d: %x + %x", i, len(src), x, add)
		}
	}
}

func TestEveryPathInEveryPlace(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		want, keep := make([]float32, proving.Lengths), make([]float32, proving.Lengths)
		turn := 0
		proving.Places(t, value, func(dst, src []float32) {
			turn++
			add := []float32{0, 1, 3, -0.5}[turn%4]
			logGeneric(want, src, add)
			Log(dst, src, add)
			same(t, want, dst, src, add)
			copy(keep, src)
			Log(src, src, add)
			same(t, want, src, keep[:len(src)], add)
		})
	})
}

func TestLogAllocatesNothing(t *testing.T) {
	src, dst := make([]float32, 100), make([]float32, 100)
	for i := range src {
		src[i] = value(i)
	}
	proving.EachLevel(t, func(t *testing.T) {
		require.Zero(t, testing.AllocsPerRun(10, func() { Log(dst, src, 0) }))
	})
}

func FuzzLog(f *testing.F) {
	f.Add(make([]byte, 80), float32(0))
	f.Add([]byte("a value of four bytes, and some more than that of it"), float32(1))
	f.Fuzz(func(t *testing.T, data []byte, add float32) {
		src := make([]float32, len(data)/4)
		for i := range src {
			src[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
		want, got := make([]float32, len(src)), make([]float32, len(src))
		logGeneric(want, src, add)
		Log(got, src, add)
		same(t, want, got, src, add)
	})
}
