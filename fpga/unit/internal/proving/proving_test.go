package proving

import (
	"math"
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

func faults(f func()) (faulted bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { faulted = recover() != nil }()
	f()
	return false
}

// A byte past either end faults, so that a kernel that takes one ends its test.
func TestFence(t *testing.T) {
	f := NewFence(t, 100)
	end := End[int64](f, 3)
	require.Len(t, end, 3)
	last := unsafe.Pointer(&end[2])
	var sink byte
	require.False(t, faults(func() { end[0], end[2] = 1, 2 }))
	require.False(t, faults(func() { sink = *(*byte)(unsafe.Add(last, 7)) }))
	require.True(t, faults(func() { sink = *(*byte)(unsafe.Add(last, 8)) }))
	start := Start[int32](f, 0, 5)
	require.Len(t, start, 5)
	first := unsafe.Pointer(&start[0])
	require.False(t, faults(func() { sink = *(*byte)(first) }))
	require.True(t, faults(func() { *(*byte)(unsafe.Add(first, -1)) = sink }))
	require.Equal(t, uintptr(12), uintptr(unsafe.Pointer(&Start[int32](f, 3, 1)[0]))-uintptr(first))
	require.Empty(t, End[int64](f, 0))
}

func TestPlaces(t *testing.T) {
	lengths, starts := map[int]bool{}, map[uintptr]bool{}
	next := 0
	Places(t, func(i int) int32 { return int32(i) }, func(dst []int64, src []int32) {
		require.Equal(t, len(dst), len(src))
		lengths[len(src)] = true
		if len(src) > 0 {
			starts[uintptr(unsafe.Pointer(&src[0]))%64] = true
			require.Equal(t, int32(next), src[0])
			next += len(src)
			dst[len(dst)-1] = 1
		}
	})
	require.Len(t, lengths, Lengths)
	require.Len(t, starts, 16)
}

func TestFloats(t *testing.T) {
	data := []byte{0, 0, 0x80, 0x3f, 1, 0, 0xc0, 0x7f, 0, 0, 0, 0x40, 9}
	require.Equal(t, []float32{1}, FloatsOf(data, 1))
	values := FloatsOf(data, len(data))
	require.Len(t, values, 3)
	require.Equal(t, uint32(0x7fc00001), math.Float32bits(values[1]))
	require.Equal(t, float32(2), values[2])
	require.Empty(t, FloatsOf(data[:3], 1))

	twice := func(x float32) float32 { return 2 * x }
	calls := 0
	SameFloats(t, []float32{0, -1, 0.5}, func(dst, src []float32) {
		calls++
		for i, x := range src {
			dst[i] = twice(x)
		}
	}, twice)
	require.Equal(t, 1, calls)

	zero := func(float32) float32 { return 0 }
	require.Equal(t, -1, differentFloat([]float32{1, 2}, []float32{0, 0}, zero))
	require.Equal(t, 1, differentFloat([]float32{1, 2}, []float32{0, float32(math.Copysign(0, -1))}, zero))
}

func plain()  {}
func narrow() {}
func wide()   {}
func arm()    {}

func TestPicksAndLevels(t *testing.T) {
	Picks(t, &simd.Paths[func()]{plain, narrow, wide, arm}, "plain", "narrow", "wide", "arm")
	all := simd.Plain(plain)
	all[simd.AVX2], all[simd.AVX512] = narrow, wide
	Picks(t, &all, "plain", "narrow", "wide")
	var seen []simd.Level
	EachLevel(t, func(*testing.T) { seen = append(seen, simd.Current()) })
	require.Equal(t, simd.Levels(), seen)
}
