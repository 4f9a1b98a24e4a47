// Package buffer has the memory for the data of a target's commands: a [Pool] of buffers for all connections, and a
// [Budget] of bytes for each, so that memory does not grow with what hosts send. Both are safe for concurrent use.
package buffer

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

// Buffer is memory for the data of one command.
type Buffer struct {
	Bytes []byte
	class int
}

// Pool is a pool of buffers. It is safe for concurrent use.
type Pool [bufferClasses]sync.Pool

func bufferClass(n int) int { return max(bits.Len(uint(max(n, 1)-1))-minBufferShift, 0) }

// Take returns a buffer of at least n bytes, n at most controller.MDTS. It still holds the bytes of its last use.
func (p *Pool) Take(n int) *Buffer {
	c := bufferClass(n)
	if b, ok := p[c].Get().(*Buffer); ok {
		return b
	}
	return &Buffer{make([]byte, 1<<(minBufferShift+c)), c}
}

// Return gives a buffer back, for the next Take.
func (p *Pool) Return(b *Buffer) { p[b.class].Put(b) }

// Budget is the bytes of buffers that a connection may still take. Waiters are served in the order in which they asked,
// so that small commands cannot pass a large one for ever.
type Budget struct {
	mu          sync.Mutex
	free        int
	first, last *Waiter
	over        bool
}

// Waiter waits for bytes of a budget. It is reused. The zero Waiter works.
type Waiter struct {
	n     int
	next  *Waiter
	ready chan bool
}

// NewBudget makes a budget of n bytes.
func NewBudget(n int) *Budget { return &Budget{free: n} }

// TakeWithoutWaiting takes n bytes if that needs no waiting.
func (b *Budget) TakeWithoutWaiting(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.takeNow(n)
}

func (b *Budget) takeNow(n int) bool {
	if b.over || b.first != nil || n > b.free {
		return false
	}
	b.free -= n
	return true
}

// TakeOrWait waits for n bytes, n at most what the budget began with. It reports whether it got them; after End it gets
// none.
func (b *Budget) TakeOrWait(n int, w *Waiter) bool {
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

// GiveBack returns n bytes to the budget, and serves those who wait.
func (b *Budget) GiveBack(n int) {
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

// End wakes every waiter without bytes, and lets nobody take any more.
func (b *Budget) End() {
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
