package slicer

import "github.com/millrace/millrace/sdk/target"

// arena is the memory between the result block and the output slots, in three areas. It knows which chunk holds what.
type arena struct {
	region *Region
	input  area // windows
	dict   area // decoded dictionaries
	room   area // unpacked pages

	evictions int // chunks that made way so far
}

// divide sets the areas' sizes. What was in them is lost. They must fit into the region's room.
func (a *arena) divide(input, dict, room uint64) {
	a.input, a.dict, a.room = newArea(input), newArea(dict), newArea(room)
}

// free returns the bytes that the areas may share.
func (a *arena) free() uint64 { return a.region.room() }

// held returns the bytes that chunks hold.
func (a *arena) held() uint64 { return a.input.used() + a.dict.used() + a.room.used() }

// addRanges sets the memory ranges of the areas.
func (a *arena) addRanges(ranges *[target.Ranges]target.Span) {
	at := a.region.result.End()
	ranges[target.RangeInput] = target.Span{Addr: at, Len: a.input.size}
	at += a.input.size
	ranges[target.RangeDict] = target.Span{Addr: at, Len: a.dict.size}
	at += a.dict.size
	ranges[target.RangeScratch] = target.Span{Addr: at, Len: a.room.size}
}

// inputAddr returns the address of an offset of the input area.
func (a *arena) inputAddr(offset uint64) uint64 { return a.region.result.End() + offset }

// drop takes all memory of a chunk.
func (a *arena) drop(c *chunk) {
	a.dropWindow(c)
	a.dropDict(c)
	a.dropRoom(c)
}

func (a *arena) dropWindow(c *chunk) {
	v := c.window
	if v == nil {
		return
	}
	c.window, c.ready = nil, 0
	if v.users--; v.users == 0 {
		a.input.release(v.segment)
	}
}

func (a *arena) dropDict(c *chunk) {
	a.dict.release(c.dictSpan)
	c.dictSpan, c.cursor.Dict, c.ready = segment{}, false, 0
	if c.resume != nil {
		c.resume.Dict = false
	}
}

func (a *arena) dropRoom(c *chunk) {
	a.room.release(c.roomSpan)
	c.roomSpan, c.cursor.Unpacked, c.ready = segment{}, false, 0
}

// flush takes the memory of all chunks. The areas are empty until they are divided again.
func (a *arena) flush(cs *columns) {
	for _, live := range cs.live {
		for _, c := range live {
			a.drop(c)
		}
	}
	a.divide(0, 0, 0)
}

// dropWindows takes the windows of all chunks.
func (a *arena) dropWindows(cs *columns) {
	for _, live := range cs.live {
		for _, c := range live {
			a.dropWindow(c)
		}
	}
}

// evict takes what a chunk has of an area, and reports whether it had something.
func (a *arena) evict(c *chunk, from *area) bool {
	switch {
	case from == &a.input && c.window != nil:
		a.dropWindow(c)
	case from == &a.dict && c.dictSpan.size > 0:
		a.dropDict(c)
	case from == &a.room && c.roomSpan.size > 0:
		a.dropRoom(c)
	default:
		return false
	}
	a.evictions++
	return true
}
