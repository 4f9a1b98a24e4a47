package slicer

import (
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/sdk/target"
)

// Workspace is a run of a target's memory that slicers use, one after another. From its start: the result block; the
// input, dictionary and scratch areas, whose boundaries move as needs are learned; free memory; and at its end the ring
// of output buffers.
//
//	| result | input      | dictionaries | scratch | ...  | buffer | buffer | buffer |
//
// The areas belong to the slicer that uses the workspace. The buffers outlive it, since a mini-batch that lies in
// one may be lent. A Workspace is not safe for concurrent use.
type Workspace struct {
	span       target.Span
	result     target.Span
	ring       []*Buffer // the buffers that mini-batches are made in, of one size
	bufferSize uint64
	strays     []*Buffer // lent buffers of earlier rings
}

// Buffer holds one mini-batch of output.
type Buffer struct {
	Span target.Span
	busy bool // holds the mini-batch in the making, or a lent one
}

// NewWorkspace makes a workspace of a span of memory, for slices of at most maxTasks tasks. The span must have at
// least LeastWorkspace bytes.
func NewWorkspace(span target.Span, maxTasks int) *Workspace {
	result := roundUpToGrain(uint64(wire.ResultSize(maxTasks)))
	return &Workspace{span: span, result: target.Span{Addr: span.Addr, Len: result}}
}

// LeastWorkspace returns the least bytes of a workspace for slices of at most maxTasks tasks: a result block and the
// smallest buffer.
func LeastWorkspace(maxTasks int) uint64 {
	return roundUpToGrain(uint64(wire.ResultSize(maxTasks))) + grain
}

// Release gives back a buffer that Done named.
func (r *Workspace) Release(s *Buffer) {
	s.busy = false
	for i, other := range r.strays {
		if other == s {
			r.strays[i] = r.strays[len(r.strays)-1]
			r.strays = r.strays[:len(r.strays)-1]
			break
		}
	}
}

// FreeBuffers returns the number of buffers of the ring that hold no mini-batch.
func (r *Workspace) FreeBuffers() (n int) {
	for _, s := range r.ring {
		if !s.busy {
			n++
		}
	}
	return n
}

// Buffers returns the number of buffers of the ring.
func (r *Workspace) Buffers() int { return len(r.ring) }

// lowestBufferAddress returns the address of the lowest buffer. The memory below belongs to the areas.
func (r *Workspace) lowestBufferAddress() uint64 {
	low := r.span.End()
	for _, s := range r.ring {
		low = min(low, s.Span.Addr)
	}
	for _, s := range r.strays {
		low = min(low, s.Span.Addr)
	}
	return low
}

// areaBytes returns the number of bytes that the three areas may share.
func (r *Workspace) areaBytes() uint64 {
	low, begin := r.lowestBufferAddress(), r.result.End()
	if low < begin {
		return 0
	}
	return low - begin
}

// hasRingOf reports whether the ring has n buffers of size bytes each.
func (r *Workspace) hasRingOf(n int, size uint64) bool {
	return len(r.ring) == n && r.bufferSize == roundUpToGrain(size)
}

// makeRingOf makes the ring of n buffers of size bytes each and reports whether they fit; if not, there is no ring.
// Buffers that are busy stay where they are, out of the ring. The areas must be arranged again.
func (r *Workspace) makeRingOf(n int, size uint64) bool {
	size = roundUpToGrain(size)
	for _, s := range r.ring {
		if s.busy {
			r.strays = append(r.strays, s)
		}
	}
	r.ring, r.bufferSize = nil, 0
	top, begin := r.lowestBufferAddress(), r.result.End()
	if top < begin || (top-begin)/uint64(n) < size {
		return false
	}
	for i := range n {
		r.ring = append(r.ring, &Buffer{Span: target.Span{Addr: top - uint64(i+1)*size, Len: size}})
	}
	r.bufferSize = size
	return true
}

// acquireBuffer takes a free buffer of the ring, or returns nil if there is none.
func (r *Workspace) acquireBuffer() *Buffer {
	for _, s := range r.ring {
		if !s.busy {
			s.busy = true
			return s
		}
	}
	return nil
}
