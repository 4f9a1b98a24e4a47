package processor

import (
	"slices"
)

// grain is the boundary, in bytes, of everything that the planner places in memory. It is the alignment of a tensor
// (program.Align), and more than any decoder wants.
const grain = 64

// up rounds n up to the grain.
func up(n uint64) uint64 { return (n + grain - 1) &^ (grain - 1) }

// down rounds n down to the grain.
func down(n uint64) uint64 { return n &^ (grain - 1) }

// segment is a piece of an area. The zero value is no piece.
type segment struct{ off, size uint64 }

func (s segment) end() uint64 { return s.off + s.size }

// area hands out pieces of one memory range, first fit. Offsets count from the range's start.
type area struct {
	size uint64
	free []segment // sorted, none empty, none touching the next
}

func newArea(size uint64) area {
	a := area{size: size}
	if size > 0 {
		a.free = []segment{{0, size}}
	}
	return a
}

// take returns a piece of n bytes, rounded up to the grain; no bytes are the zero segment. It is not ok when no free
// piece is large enough.
func (a *area) take(n uint64) (s segment, ok bool) {
	if n == 0 {
		return segment{}, true
	}
	if n > a.size {
		return segment{}, false
	}
	n = up(n)
	for i := range a.free {
		f := &a.free[i]
		if f.size < n {
			continue
		}
		s = segment{f.off, n}
		f.off += n
		f.size -= n
		if f.size == 0 {
			a.free = slices.Delete(a.free, i, i+1)
		}
		return s, true
	}
	return segment{}, false
}

// give takes a piece back.
func (a *area) give(s segment) {
	if s.size == 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(a.free, s.off, func(f segment, off uint64) int {
		if f.off < off {
			return -1
		}
		return 1
	})
	joinsLeft := i > 0 && a.free[i-1].end() == s.off
	joinsRight := i < len(a.free) && s.end() == a.free[i].off
	switch {
	case joinsLeft && joinsRight:
		a.free[i-1].size += s.size + a.free[i].size
		a.free = slices.Delete(a.free, i, i+1)
	case joinsLeft:
		a.free[i-1].size += s.size
	case joinsRight:
		a.free[i].off = s.off
		a.free[i].size += s.size
	default:
		a.free = slices.Insert(a.free, i, s)
	}
}

// unused is the number of bytes not handed out.
func (a *area) unused() (n uint64) {
	for _, f := range a.free {
		n += f.size
	}
	return n
}
