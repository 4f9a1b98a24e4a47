package proving

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Fence is memory between two pages that fault on every access.
type Fence struct{ mem []byte }

// NewFence returns a fence of at least size bytes, until the test ends.
func NewFence(t testing.TB, size int) *Fence {
	t.Helper()
	page := unix.Getpagesize()
	inner := (size + page - 1) / page * page
	all, err := unix.Mmap(-1, 0, inner+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatalf("map %d bytes: %v", inner+2*page, err)
	}
	t.Cleanup(func() { _ = unix.Munmap(all) })
	for _, p := range [][]byte{all[:page], all[page+inner:]} {
		if err := unix.Mprotect(p, unix.PROT_NONE); err != nil {
			t.Fatalf("protect a page: %v", err)
		}
	}
	return &Fence{all[page : page+inner]}
}

// End returns n elements that end where the page behind begins. T holds no pointers.
func End[T any](f *Fence, n int) []T {
	var zero T
	size := n * int(unsafe.Sizeof(zero))
	return over[T](f.mem[len(f.mem)-size:], n)
}

// Start returns n elements, the first of them skip elements behind the page before.
func Start[T any](f *Fence, skip, n int) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	return over[T](f.mem[skip*size:][:n*size], n)
}

func over[T any](mem []byte, n int) []T {
	if n == 0 {
		return []T{}
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&mem[0])), n)
}

// Lengths are those that every kernel is tested at: 0 to 257, which is past any number of lanes times any unrolling.
const Lengths = 258

// Places calls f with each length, and destinations and sources of elements D and S in every place that matters: ending
// at the fence, and beginning at every element of a 64-byte line. Sources hold what fill makes of the index.
func Places[D, S any](t testing.TB, fill func(i int) S, f func(dst []D, src []S)) {
	t.Helper()
	var d D
	var s S
	to, from := NewFence(t, Lengths*int(unsafe.Sizeof(d))+64), NewFence(t, Lengths*int(unsafe.Sizeof(s))+64)
	at := 0
	place := func(dst []D, src []S) {
		for i := range src {
			src[i] = fill(at)
			at++
		}
		f(dst, src)
	}
	for n := range Lengths {
		place(End[D](to, n), End[S](from, n))
	}
	for skip := range 64 / int(unsafe.Sizeof(s)) {
		for _, n := range []int{0, 1, 7, 8, 9, 31, 33, 64, 100, 257} {
			place(Start[D](to, skip%(64/int(unsafe.Sizeof(d))), n), Start[S](from, skip, n))
			place(Start[D](to, 0, n), Start[S](from, skip, n))
		}
	}
}
