package slicer

import "github.com/millrace/millrace/sdk/target"

// arena is the memory between the result block and the output buffers, in three areas. It knows which chunk holds which
// bytes.
type arena struct {
	workspace *Workspace
	input     area // windows
	dict      area // decoded dictionaries
	scratch   area // unpacked pages

	evictions int // chunks that made way so far
}

// setAreaSizes sets the areas' sizes. Their content is lost. They must fit into the bytes that the workspace has for
// areas.
func (a *arena) setAreaSizes(input, dict, room uint64) {
	a.input, a.dict, a.scratch = newArea(input), newArea(dict), newArea(room)
}

// freeBytes returns the bytes that the areas may share.
func (a *arena) freeBytes() uint64 { return a.workspace.areaBytes() }

// heldBytes returns the bytes that chunks hold.
func (a *arena) heldBytes() uint64 {
	return a.input.usedBytes() + a.dict.usedBytes() + a.scratch.usedBytes()
}

// setMemoryRanges sets the memory ranges of the areas.
func (a *arena) setMemoryRanges(ranges *[target.Ranges]target.Span) {
	at := a.workspace.result.End()
	ranges[target.RangeInput] = target.Span{Addr: at, Len: a.input.size}
	at += a.input.size
	ranges[target.RangeDict] = target.Span{Addr: at, Len: a.dict.size}
	at += a.dict.size
	ranges[target.RangeScratch] = target.Span{Addr: at, Len: a.scratch.size}
}

// inputAddress returns the address of an offset of the input area.
func (a *arena) inputAddress(offset uint64) uint64 { return a.workspace.result.End() + offset }

// dropEverything takes all memory of a chunk.
func (a *arena) dropEverything(c *chunk) {
	a.dropWindow(c)
	a.dropDictionary(c)
	a.dropScratch(c)
}

func (a *arena) dropWindow(c *chunk) {
	v := c.window
	if v == nil {
		return
	}
	c.window, c.rowsInWindow = nil, 0
	if v.sharers--; v.sharers == 0 {
		a.input.releaseSegment(v.segment)
	}
}

func (a *arena) dropDictionary(c *chunk) {
	a.dict.releaseSegment(c.dictSegment)
	c.dictSegment, c.cursor.Dict, c.rowsInWindow = segment{}, false, 0
	if c.resumeAt != nil {
		c.resumeAt.Dict = false
	}
}

func (a *arena) dropScratch(c *chunk) {
	a.scratch.releaseSegment(c.scratchSegment)
	c.scratchSegment, c.cursor.Unpacked, c.rowsInWindow = segment{}, false, 0
}

// dropAllChunks takes the memory of all chunks. The areas are empty until they are divided again.
func (a *arena) dropAllChunks(cs *columns) {
	for _, live := range cs.begun {
		for _, c := range live {
			a.dropEverything(c)
		}
	}
	a.setAreaSizes(0, 0, 0)
}

// dropAllWindows takes the windows of all chunks.
func (a *arena) dropAllWindows(cs *columns) {
	for _, live := range cs.begun {
		for _, c := range live {
			a.dropWindow(c)
		}
	}
}

// evictChunk frees the part of an area that a chunk holds, and reports whether there was any.
func (a *arena) evictChunk(c *chunk, from *area) bool {
	switch {
	case from == &a.input && c.window != nil:
		a.dropWindow(c)
	case from == &a.dict && c.dictSegment.size > 0:
		a.dropDictionary(c)
	case from == &a.scratch && c.scratchSegment.size > 0:
		a.dropScratch(c)
	default:
		return false
	}
	a.evictions++
	return true
}
