package processor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/target"
)

const (
	lentBuffers = 2 // mini-batches lent at most by one stream
	freeBuffers = 2 // output buffers that stay free when one is lent, where there is room for them
	ringBuffers = lentBuffers + freeBuffers
)

// memoryPool divides a target's memory: the program and its lookup tables lie at its
// beginning, and every stream gets an equal share of the
// rest. It is safe for concurrent use.
type memoryPool struct {
	total   uint64        // bytes in use, with the program's
	program uint64        // bytes of the program and its lookup tables
	initial uint64        // bytes of a share that its stream uses before the rest; 0: all of them
	streams int           // most streams at once
	waiting chan struct{} // a token for each share that no stream has

	mu   sync.Mutex     // guards idle
	idle []*memoryShare // shares that no stream has, the one that was given back last at the end
}

// newMemoryPool divides available bytes, or as many of them as the options allow.
func newMemoryPool(available uint64, prog *slicer.Program, opts Options) (*memoryPool, error) {
	p := &memoryPool{total: alignDown(available), program: prog.MemoryBytes(), streams: opts.Streams}
	if opts.SLM > 0 {
		p.total = alignDown(min(p.total, opts.SLM))
	}
	if p.streams <= 0 {
		p.streams = 1
		if p.total > p.program && (p.total-p.program)/2 >= MinStreamMemory {
			p.streams = 2
		}
	}
	n := uint64(p.streams)
	if least := p.program + n*slicer.LeastWorkspace(prog.MaxTasks); p.total < least {
		return nil, &slicer.MemoryError{
			Partition: "program", RowGroup: -1, Need: least, Have: p.total, Streams: p.streams,
		}
	}
	share := alignDown((p.total - p.program) / n)
	if n := alignDown(opts.StreamMemory); n >= slicer.LeastWorkspace(prog.MaxTasks) && n <= share/2 {
		p.initial = n
	}
	p.waiting = make(chan struct{}, p.streams)
	for i := range n {
		p.giveBack(newMemoryShare(target.Span{Addr: p.program + (n-1-i)*share, Len: share}, p.initial, prog.MaxTasks))
	}
	return p, nil
}

// takeShare waits until a share is idle, or ctx ends. An idle share is taken even if ctx has ended. Of several it is
// the one that was used last: its pages of memory are there, and some of its bytes are in a cache.
func (p *memoryPool) takeShare(ctx context.Context) (*memoryShare, error) {
	select {
	case <-p.waiting:
		return p.lastIdle(), nil
	default:
	}
	select {
	case <-p.waiting:
		return p.lastIdle(), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for one of %d to end: %w", p.streams, context.Cause(ctx))
	}
}

// lastIdle takes the share that was given back last. The caller has taken a token.
func (p *memoryPool) lastIdle() *memoryShare {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	share := p.idle[last]
	p.idle = p.idle[:last]
	return share
}

// giveBack makes a share idle.
func (p *memoryPool) giveBack(share *memoryShare) {
	p.mu.Lock()
	p.idle = append(p.idle, share)
	p.mu.Unlock()
	p.waiting <- struct{}{}
}

// scaleError makes a *slicer.MemoryError name the memory of all streams and the program instead of one stream's. A
// stream fails for want of memory in the rest of its share only.
func (p *memoryPool) scaleError(err error) error {
	if err == nil {
		return nil // before anything is allocated
	}
	if e := (*slicer.MemoryError)(nil); errors.As(err, &e) {
		e.Need, e.Have, e.Streams = p.program+uint64(p.streams)*(p.initial+e.Need), p.total, p.streams
	}
	return err
}

// alignDown rounds n down to the alignment of tensors.
func alignDown(n uint64) uint64 { return n &^ (program.Align - 1) }

// memoryShare is the part of a target's memory that one stream uses. Its workspace has one owner, the stream. Any
// goroutine may give back a lent buffer, also after the stream has ended and another stream has the share.
// returnBuffer puts the buffer aside, and the owner reclaims it before it goes on.
type memoryShare struct {
	workspace *slicer.Workspace
	// rest is the part of the share that the stream uses after a mini-batch or a page did not fit in workspace; nil: there
	// is none. Buffers of workspace may still be lent then, so that its memory is not used again.
	rest *memoryShare

	mu       sync.Mutex // guards returned
	returned []*slicer.Buffer
}

// newMemoryShare makes the share of one stream in a span of memory. Its stream uses initial bytes before the rest; 0 is
// all of them.
func newMemoryShare(span target.Span, initial uint64, maxTasks int) *memoryShare {
	if initial == 0 {
		return &memoryShare{workspace: slicer.NewWorkspace(span, maxTasks)}
	}
	rest := target.Span{Addr: span.Addr + initial, Len: span.Len - initial}
	span.Len = initial
	return &memoryShare{
		workspace: slicer.NewWorkspace(span, maxTasks),
		rest:      &memoryShare{workspace: slicer.NewWorkspace(rest, maxTasks)},
	}
}

// returnBuffer puts aside a buffer that is no longer lent.
func (m *memoryShare) returnBuffer(s *slicer.Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.returned = append(m.returned, s)
}

// reclaimBuffers makes the buffers that were put aside free again.
func (m *memoryShare) reclaimBuffers() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.returned {
		m.workspace.Release(s)
	}
	m.returned = m.returned[:0]
}

// mayLend reports whether enough buffers stay free for a mini-batch to be lent.
func (m *memoryShare) mayLend() bool {
	m.reclaimBuffers()
	// A short ring has one buffer fewer, so that one stays free: the next mini-batch is made in it.
	return m.workspace.FreeBuffers() >= max(min(freeBuffers, m.workspace.Buffers()-lentBuffers), 1)
}
