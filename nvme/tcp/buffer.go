package tcp

import (
	"math/bits"
	"sync"

	"github.com/millrace/millrace/nvme/controller"
)

// Buffers come in sizes of powers of two, from a page to the most data of a command.
const (
	minBufferShift = 12
	bufferClasses  = 9 // 4 KiB to 1 MiB
)

var _ [controller.MDTS - 1<<(minBufferShift+bufferClasses-1)]struct{} // the largest class holds the most data

// buffer is memory for the data of one command.
type buffer struct {
	b     []byte
	class int
}

// buffers is a pool of buffers. It is safe for concurrent use.
type buffers [bufferClasses]sync.Pool

func bufferClass(n int) int { return max(bits.Len(uint(max(n, 1)-1))-minBufferShift, 0) }

// takeBuffer returns a buffer of at least n bytes, n at most controller.MDTS. It still holds the bytes of its last use.
func (p *buffers) takeBuffer(n int) *buffer {
	c := bufferClass(n)
	if b, ok := p[c].Get().(*buffer); ok {
		return b
	}
	return &buffer{make([]byte, 1<<(minBufferShift+c)), c}
}

func (p *buffers) returnBuffer(b *buffer) { p[b.class].Put(b) }

// budget is the bytes of buffers that a connection may still take. Waiters are served in the order in which they asked,
// so that small commands cannot pass a large one for ever.
type budget struct {
	mu          sync.Mutex
	free        int
	first, last *waiter
	over        bool
}

// waiter waits for bytes of a budget. It is reused. The zero waiter works.
type waiter struct {
	n     int
	next  *waiter
	ready chan bool
}

// takeWithoutWaiting takes n bytes if that needs no waiting.
func (b *budget) takeWithoutWaiting(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.takeNow(n)
}

func (b *budget) takeNow(n int) bool {
	if b.over || b.first != nil || n > b.free {
		return false
	}
	b.free -= n
	return true
}

// takeOrWait waits for n bytes, n at most what the budget began with. It reports whether it got them; after end it gets
// none.
func (b *budget) takeOrWait(n int, w *waiter) bool {
	b.mu.Lock()
	if b.over || b.takeNow(n) {
		defer b.mu.Unlock()
		return !b.over
	}
	if w.ready == nil {
		w.ready = make(chan bool, 1)
	}
	w.n, w.next = n, nil
	if b.first == nil {
		b.first = w
	} else {
		b.last.next = w
	}
	b.last = w
	b.mu.Unlock()
	return <-w.ready
}

func (b *budget) giveBack(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	for b.first != nil && b.first.n <= b.free {
		w := b.first
		b.free -= w.n
		b.first = w.next
		w.ready <- true
	}
}

// wakeWaiters wakes every waiter without bytes.
func (b *budget) wakeWaiters() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	for w := b.first; w != nil; {
		next := w.next // the waiter that is sent away uses w again
		w.ready <- false
		w = next
	}
	b.first = nil
}
