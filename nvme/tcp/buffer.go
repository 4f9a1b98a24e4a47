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

// get returns a buffer of at least n bytes, n at most controller.MDTS. What it holds is what others left there.
func (p *buffers) get(n int) *buffer {
	c := bufferClass(n)
	if b, ok := p[c].Get().(*buffer); ok {
		return b
	}
	return &buffer{make([]byte, 1<<(minBufferShift+c)), c}
}

func (p *buffers) put(b *buffer) { p[b.class].Put(b) }

// budget is the bytes of buffers that a connection may still take. It serves in the order of asking, so that a large
// command is not passed by small ones for ever.
type budget struct {
	mu    sync.Mutex
	free  int
	queue []*waiter
	over  bool
}

type waiter struct {
	n     int
	ready chan bool
}

// try takes n bytes if that needs no waiting.
func (b *budget) try(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || len(b.queue) > 0 || n > b.free {
		return false
	}
	b.free -= n
	return true
}

// take waits for n bytes, n at most what the budget began with, and tells whether it got them: not after end.
func (b *budget) take(n int) bool {
	if b.try(n) {
		return true
	}
	b.mu.Lock()
	if b.over {
		b.mu.Unlock()
		return false
	}
	w := &waiter{n, make(chan bool, 1)}
	b.queue = append(b.queue, w)
	b.serve()
	b.mu.Unlock()
	return <-w.ready
}

func (b *budget) give(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.serve()
}

// serve wakes those at the head of the queue for whom there is enough. b.mu is held.
func (b *budget) serve() {
	for len(b.queue) > 0 && b.queue[0].n <= b.free {
		b.free -= b.queue[0].n
		b.queue[0].ready <- true
		b.queue = b.queue[1:]
	}
}

// end sends everybody away.
func (b *budget) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	for _, w := range b.queue {
		w.ready <- false
	}
	b.queue = nil
}
