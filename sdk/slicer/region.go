package slicer

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/target"
)

// Region is a run of a target's memory that slicers use, one after another. From its start: the result block; the
// input, dictionary and scratch areas, whose boundaries move as needs are learned; free memory; and at its end the ring
// of output slots.
//
//	| result | input      | dictionaries | scratch | ...  | slot | slot | slot |
//
// The areas belong to the slicer at hand. The slots outlive it, since a mini-batch that lies in one may be lent. A
// Region is not safe for concurrent use.
type Region struct {
	span     target.Span
	result   target.Span
	ring     []*Slot // the slots that mini-batches are made in, of one size
	slotSize uint64
	strays   []*Slot // lent slots of earlier rings
}

// Slot holds one mini-batch of output.
type Slot struct {
	Span target.Span
	busy bool // holds the mini-batch in the making, or a lent one
}

// NewRegion makes a region of a span of memory, for slices of at most maxTasks tasks. LeastRegion bytes are wanted.
func NewRegion(span target.Span, maxTasks int) *Region {
	return &Region{span: span, result: target.Span{Addr: span.Addr, Len: roundUp(uint64(program.ResultSize(maxTasks)))}}
}

// LeastRegion returns the least bytes of a region for slices of at most maxTasks tasks: a result block and the smallest
// slot.
func LeastRegion(maxTasks int) uint64 { return roundUp(uint64(program.ResultSize(maxTasks))) + grain }

// Release gives a slot back that Done named.
func (r *Region) Release(s *Slot) {
	s.busy = false
	for i, other := range r.strays {
		if other == s {
			r.strays[i] = r.strays[len(r.strays)-1]
			r.strays = r.strays[:len(r.strays)-1]
			break
		}
	}
}

// FreeSlots returns the number of slots of the ring that hold no mini-batch.
func (r *Region) FreeSlots() (n int) {
	for _, s := range r.ring {
		if !s.busy {
			n++
		}
	}
	return n
}

// lowestSlot returns the address of the lowest slot. What lies below belongs to the areas.
func (r *Region) lowestSlot() uint64 {
	low := r.span.End()
	for _, s := range r.ring {
		low = min(low, s.Span.Addr)
	}
	for _, s := range r.strays {
		low = min(low, s.Span.Addr)
	}
	return low
}

// room returns the number of bytes that the three areas may share.
func (r *Region) room() uint64 {
	low, begin := r.lowestSlot(), r.result.End()
	if low < begin {
		return 0
	}
	return low - begin
}

// hasRing reports whether the ring has n slots of size bytes each.
func (r *Region) hasRing(n int, size uint64) bool {
	return len(r.ring) == n && r.slotSize == roundUp(size)
}

// makeRing makes the ring of n slots of size bytes each and reports whether they fit; if not, there is no ring. Slots
// that are busy stay where they are, out of the ring. The areas must be arranged again.
func (r *Region) makeRing(n int, size uint64) bool {
	size = roundUp(size)
	for _, s := range r.ring {
		if s.busy {
			r.strays = append(r.strays, s)
		}
	}
	r.ring, r.slotSize = nil, 0
	top, begin := r.lowestSlot(), r.result.End()
	if top < begin || (top-begin)/uint64(n) < size {
		return false
	}
	for i := range n {
		r.ring = append(r.ring, &Slot{Span: target.Span{Addr: top - uint64(i+1)*size, Len: size}})
	}
	r.slotSize = size
	return true
}

// acquire takes a free slot of the ring, nil if there is none.
func (r *Region) acquire() *Slot {
	for _, s := range r.ring {
		if !s.busy {
			s.busy = true
			return s
		}
	}
	return nil
}
