package passthru

import (
	"errors"
	"sync"
	"unsafe"
)

// isPageAligned reports whether b begins at a multiple of pageSize, where the kernel takes it without a copy of its
// own.
func isPageAligned(b []byte) bool { return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%pageSize == 0 }

// buffers are aligned buffers for data that is not. They are made when they are first wanted, outside of Go's heap.
type buffers struct {
	size int // Every buffer that is kept has this size.
	most int // buffers kept
	make func(n int) ([]byte, func() error, error)

	mu   sync.Mutex // guards free
	free []*buffer
}

// buffer is one aligned buffer.
type buffer struct {
	bytes []byte
	free  func() error
}

// takeBuffer returns a buffer of at least n bytes.
func (p *buffers) takeBuffer(n int) (*buffer, error) {
	if n <= p.size {
		n = p.size
		p.mu.Lock()
		if last := len(p.free) - 1; last >= 0 {
			b := p.free[last]
			p.free = p.free[:last]
			p.mu.Unlock()
			return b, nil
		}
		p.mu.Unlock()
	}
	b, free, err := p.make(n)
	if err != nil {
		return nil, err
	}
	return &buffer{b, free}, nil
}

// returnBuffer takes a buffer back. No caller could repair a failure to unmap a buffer that is not kept.
func (p *buffers) returnBuffer(b *buffer) {
	p.mu.Lock()
	if len(b.bytes) == p.size && len(p.free) < p.most {
		p.free = append(p.free, b)
		b = nil
	}
	p.mu.Unlock()
	if b != nil {
		_ = b.free()
	}
}

// freeAll frees all buffers; none is in use.
func (p *buffers) freeAll() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, b := range p.free {
		errs = append(errs, b.free())
	}
	p.free = nil
	return errors.Join(errs...)
}
