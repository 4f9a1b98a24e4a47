package processor

import (
	"sync"

	"github.com/millrace/millrace/sdk/target"
)

// lane is the part of a target's memory that one stream uses. From its start: the result block; input, dictionary and
// scratch areas, whose boundaries move as needs are learned; free memory; and at its end the ring of output slots.
//
//	base                                                                   end
//	| result | input      | dictionaries | scratch | ...  | slot | slot | slot |
//
// A lane has one owner, its stream, except for what mu guards: a slot may be given back by anybody, also after the
// stream has ended and another one has the lane.
type lane struct {
	base, end uint64
	result    target.Span

	in, dict, scratch             area
	inBase, dictBase, scratchBase uint64

	mu       sync.Mutex
	ring     []*slot // the slots that mini-batches are made in, of one size
	slotSize uint64
	strays   []*slot // lent slots of earlier rings
}

// slot holds one mini-batch of output. lane.mu guards busy.
type slot struct {
	addr, size uint64
	busy       bool // in use or lent
}

// floor is the address of the lowest slot: what is below belongs to the areas.
func (l *lane) floor() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lowest()
}

func (l *lane) lowest() uint64 {
	low := l.end
	for _, s := range l.ring {
		low = min(low, s.addr)
	}
	for _, s := range l.strays {
		low = min(low, s.addr)
	}
	return low
}

// room is the number of bytes that the three areas may share.
func (l *lane) room() uint64 {
	low, begin := l.floor(), l.result.End()
	if low < begin {
		return 0
	}
	return low - begin
}

// slots makes the ring of n slots of size bytes each; false if they do not fit. Slots that are lent stay where they are,
// out of the ring. The areas must be arranged anew.
func (l *lane) slots(n int, size uint64) bool {
	size = up(size)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.ring {
		if s.busy {
			l.strays = append(l.strays, s)
		}
	}
	l.ring, l.slotSize = nil, 0
	top, begin := l.lowest(), l.result.End()
	if top < begin || (top-begin)/uint64(n) < size {
		return false
	}
	for i := range n {
		l.ring = append(l.ring, &slot{addr: top - uint64(i+1)*size, size: size})
	}
	l.slotSize = size
	return true
}

// acquire takes a free slot, nil if there is none.
func (l *lane) acquire() *slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.ring {
		if !s.busy {
			s.busy = true
			return s
		}
	}
	return nil
}

// spare is the number of free slots.
func (l *lane) spare() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.ring {
		if !s.busy {
			n++
		}
	}
	return n
}

// giveBack frees a slot.
func (l *lane) giveBack(s *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.busy = false
	for i, o := range l.strays {
		if o == s {
			l.strays[i] = l.strays[len(l.strays)-1]
			l.strays = l.strays[:len(l.strays)-1]
			break
		}
	}
}

// arrange sets the areas' sizes; everything in them is lost. They must fit into room.
func (l *lane) arrange(in, dict, scratch uint64) {
	l.inBase = l.result.End()
	l.dictBase = l.inBase + in
	l.scratchBase = l.dictBase + dict
	l.in, l.dict, l.scratch = newArea(in), newArea(dict), newArea(scratch)
}
