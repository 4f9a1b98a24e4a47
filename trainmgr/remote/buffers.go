package remote

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/millrace/millrace/sdk/tensor"
)

// buffers lends memory for frames, and takes it back: in steady state no tensor's memory is allocated. Classes are
// eighths of a power of two, so that at most an eighth of a buffer is idle.
type buffers struct {
	keep int64 // bytes to hold on to

	mu      sync.Mutex
	free    map[int][][]byte // by class size
	held    int64            // bytes in free
	largest int              // bytes of the largest frame that has come
}

func newBuffers(keep int64) *buffers { return &buffers{keep: keep, free: map[int][][]byte{}} }

// class is the size of the buffers that frames of n bytes are read into.
func class(n int) int {
	if n <= 4096 {
		return 4096
	}
	step := 1 << (bits.Len(uint(n-1)) - 4)
	return (n + step - 1) / step * step
}

// get returns a buffer of n bytes that begins at a multiple of tensor.Align.
func (p *buffers) get(n int) []byte {
	size := class(n)
	p.mu.Lock()
	list := p.free[size]
	if len(list) > 0 {
		b := list[len(list)-1]
		p.free[size] = list[:len(list)-1]
		p.held -= int64(size)
		p.mu.Unlock()
		return b[:n]
	}
	p.mu.Unlock()
	b := make([]byte, size+tensor.Align)
	off := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (tensor.Align - 1)
	return b[off : off+n : off+size]
}

// put takes a buffer of get back.
func (p *buffers) put(b []byte) {
	size := cap(b)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held+int64(size) > p.keep {
		return
	}
	p.free[size] = append(p.free[size], b[:0])
	p.held += int64(size)
}
