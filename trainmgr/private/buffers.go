package private

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// leastBuffers is the least number of buffers of a rank, for buffers of every size: the buffer of the current step, the
// buffer of the previous step, which a loop drops a moment later, and two buffers that are being filled. A trainer
// copies a mini-batch if fewer than two buffers would be left otherwise.
const leastBuffers = 4

// bufferGrain divides the size of every buffer.
const bufferGrain = 64 << 10

// mostBuffers is about how many buffers the bound in bytes allows at most: each is a descriptor in both processes, of
// which a trainer may have 1,024 by default. A buffer of a small mini-batch counts as more bytes, which it does not
// touch.
const mostBuffers = 512

// buffer is a memory file that holds one mini-batch at a time. The trainer maps the file, too.
type buffer struct {
	id     int
	file   *memoryFile
	inUse  bool // it holds a mini-batch that the trainer has not given back
	passed bool // the trainer has the descriptor
}

// bufferPool holds the buffers of one rank. Its owner acquires a buffer and sends it; a Free of the trainer releases
// it.
type bufferPool struct {
	limit int64 // bytes, beside two mini-batches
	grain int64 // divides the size of every buffer

	mu       sync.Mutex
	buffers  map[int]*buffer
	total    int64 // bytes of all buffers
	nextID   int
	returned chan struct{} // holds a value after a buffer was given back
	closed   bool
}

func newBufferPool(limit int64) *bufferPool {
	grain := (limit/mostBuffers + bufferGrain - 1) / bufferGrain * bufferGrain
	return &bufferPool{limit: limit, grain: max(grain, bufferGrain), buffers: map[int]*buffer{},
		returned: make(chan struct{}, 1)}
}

// errPoolClosed says that the pool's session has ended.
var errPoolClosed = errors.New("the buffers are closed")

// acquire waits for a buffer of at least size bytes, which the caller then fills. retired are buffers that the trainer
// must close: they were too small, and were removed to make room for the new buffer.
func (p *bufferPool) acquire(ctx context.Context, size int64) (b *buffer, retired []int, err error) {
	for {
		p.mu.Lock()
		b, more, err := p.tryAcquire(size)
		p.mu.Unlock()
		retired = append(retired, more...)
		if b != nil || err != nil {
			return b, retired, err
		}
		select {
		case <-p.returned:
		case <-ctx.Done():
			return nil, retired, context.Cause(ctx)
		}
	}
}

// tryAcquire returns a free buffer, or a new one if the bound allows one. It returns nil if a buffer has to come back
// first. p.mu is held.
func (p *bufferPool) tryAcquire(size int64) (b *buffer, retired []int, err error) {
	if p.closed {
		return nil, nil, errPoolClosed
	}
	var best *buffer
	for _, free := range p.buffers {
		if !free.inUse && free.file.size() >= size && (best == nil || free.file.size() < best.file.size()) {
			best = free
		}
	}
	if best != nil {
		best.inUse = true
		return best, nil, nil
	}
	rounded := (max(size, 1) + p.grain - 1) / p.grain * p.grain
	for id, free := range p.buffers { // too small, every one
		if p.hasRoomFor(rounded) {
			break
		}
		if !free.inUse {
			if free.passed {
				retired = append(retired, id)
			}
			if err := p.discard(free); err != nil {
				return nil, retired, err
			}
		}
	}
	if !p.hasRoomFor(rounded) {
		return nil, retired, nil
	}
	file, err := createMemoryFile(rounded)
	if err != nil {
		return nil, retired, err
	}
	b = &buffer{id: p.nextID, file: file, inUse: true}
	p.nextID++
	p.buffers[b.id] = b
	p.total += rounded
	return b, retired, nil
}

// hasRoomFor reports whether the bound allows another buffer. A trainer keeps no more bytes than the bound, or two
// buffers if these are larger; it copies the rest. So two buffers of any size always fit beside the buffers that the
// trainer keeps.
func (p *bufferPool) hasRoomFor(size int64) bool {
	return p.total <= p.limit+size || len(p.buffers) < leastBuffers
}

// discard closes a buffer and takes it out of the pool. The trainer's mappings of it stay valid. p.mu is held.
func (p *bufferPool) discard(b *buffer) error {
	delete(p.buffers, b.id)
	p.total -= b.file.size()
	return b.file.close()
}

// release records that the trainer gave a buffer back. The error wraps ErrProtocol if the trainer does not have the
// buffer.
func (p *bufferPool) release(id int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.buffers[id]
	if !ok || !b.inUse {
		return fmt.Errorf("%w: buffer %d was given back, which the trainer does not have", ErrProtocol, id)
	}
	b.inUse = false
	select {
	case p.returned <- struct{}{}:
	default:
	}
	return nil
}

// close discards every buffer. acquire returns an error from then on.
func (p *bufferPool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var errs []error
	for _, b := range p.buffers {
		errs = append(errs, p.discard(b))
	}
	return errors.Join(errs...)
}
