package slicer

import "slices"

// grain is the boundary, in bytes, of everything that is placed in memory. It is the alignment of a tensor
// (program.Align), and more than any decoder asks for.
const grain = 64

// roundUpToGrain rounds n up to the grain.
func roundUpToGrain(n uint64) uint64 { return (n + grain - 1) &^ (grain - 1) }

// roundDownToGrain rounds n down to the grain.
func roundDownToGrain(n uint64) uint64 { return n &^ (grain - 1) }

// segment is a part of an area. The zero value is not a segment.
type segment struct{ offset, size uint64 }

func (s segment) end() uint64 { return s.offset + s.size }

// area hands out segments of one memory range, first fit. Offsets count from the range's start.
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

// allocateSegment returns a segment of n bytes, rounded up to the grain; for no bytes it returns the zero segment.
// ok is false if no free segment is large enough.
func (a *area) allocateSegment(n uint64) (s segment, ok bool) {
	if n == 0 {
		return segment{}, true
	}
	if n > a.size {
		return segment{}, false
	}
	n = roundUpToGrain(n)
	for i := range a.free {
		f := &a.free[i]
		if f.size < n {
			continue
		}
		s = segment{f.offset, n}
		f.offset += n
		f.size -= n
		if f.size == 0 {
			a.free = slices.Delete(a.free, i, i+1)
		}
		return s, true
	}
	return segment{}, false
}

// releaseSegment takes a segment back.
func (a *area) releaseSegment(s segment) {
	if s.size == 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(a.free, s.offset, func(f segment, offset uint64) int {
		if f.offset < offset {
			return -1
		}
		return 1
	})
	joinsLeft := i > 0 && a.free[i-1].end() == s.offset
	joinsRight := i < len(a.free) && s.end() == a.free[i].offset
	switch {
	case joinsLeft && joinsRight:
		a.free[i-1].size += s.size + a.free[i].size
		a.free = slices.Delete(a.free, i, i+1)
	case joinsLeft:
		a.free[i-1].size += s.size
	case joinsRight:
		a.free[i].offset = s.offset
		a.free[i].size += s.size
	default:
		a.free = slices.Insert(a.free, i, s)
	}
}

// unusedBytes returns the number of bytes not handed out.
func (a *area) unusedBytes() (n uint64) {
	for _, f := range a.free {
		n += f.size
	}
	return n
}

// usedBytes returns the number of bytes handed out.
func (a *area) usedBytes() uint64 { return a.size - a.unusedBytes() }
