package proving

import (
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
