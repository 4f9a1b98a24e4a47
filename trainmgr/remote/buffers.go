package remote

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/millrace/millrace/sdk/tensor"
)

// buffers lends memory for frames and takes it back, so that in steady state no memory is allocated for tensors. Buffer
// sizes are eighths of a power of two, so that at most an eighth of a buffer is idle. If free buffers have no room for
// one that comes back, buffers of other sizes make room: frames may no longer have these sizes.
type buffers struct {
	maxFree int64 // most bytes in free

	mu        sync.Mutex
	free      map[int][][]byte // by buffer size
	freeBytes int64            // in free
	largest   int              // bytes of the largest frame so far
}

func newBuffers(maxFree int64) *buffers { return &buffers{maxFree: maxFree, free: map[int][][]byte{}} }

// bufferSize returns the size of the buffers into which frames of n bytes are read.
func bufferSize(n int) int {
	if n <= 4096 {
		return 4096
	}
	step := 1 << (bits.Len(uint(n-1)) - 4)
	return (n + step - 1) / step * step
}

// get returns a buffer of n bytes that begins at a multiple of tensor.Align.
func (p *buffers) get(n int) []byte {
	size := bufferSize(n)
	p.mu.Lock()
	list := p.free[size]
	if len(list) > 0 {
		b := list[len(list)-1]
		list[len(list)-1] = nil // otherwise the list keeps memory that does not come back
		p.free[size] = list[:len(list)-1]
		p.freeBytes -= int64(size)
		p.mu.Unlock()
		return b[:n]
	}
	p.mu.Unlock()
	b := make([]byte, size+tensor.Align)
	padding := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (tensor.Align - 1)
	return b[padding : padding+n : padding+size]
}

// put takes back a buffer that get has lent.
func (p *buffers) put(b []byte) {
	size := cap(b)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropOthers(size)
	if p.freeBytes+int64(size) > p.maxFree {
		return
	}
	p.free[size] = append(p.free[size], b[:0])
	p.freeBytes += int64(size)
}

// dropOthers drops free buffers of other sizes until there is room for a buffer of the size. p.mu is held.
func (p *buffers) dropOthers(size int) {
	if int64(size) > p.maxFree {
		return
	}
	for other, list := range p.free {
		for other != size && len(list) > 0 && p.freeBytes+int64(size) > p.maxFree {
			list[len(list)-1] = nil
			list = list[:len(list)-1]
			p.freeBytes -= int64(other)
		}
		if p.free[other] = list; len(list) == 0 {
			delete(p.free, other)
		}
	}
}
