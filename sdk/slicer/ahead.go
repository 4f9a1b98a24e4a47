package slicer

import (
	"slices"

	"github.com/millrace/millrace/sdk/target"
)

// planAhead plans the moves that bring windows of later slices while the slice that was built executes, so that a link
// between the host and the target is busy while the engine is. The slice's tasks must be written: what is planned here
// goes to memory that they do not name. batchRows are the rows of a whole mini-batch, as the next one is even where the
// first is short, and end is the row of the partition that the stream ends before.
//
// The planned moves are those that the builder would plan for the next slices, as far as the input area holds them
// beside the windows of this slice. They do not influence what a mini-batch holds. Only moves from the host are
// planned ahead: a drive brings its own flash's blocks itself, and other streams use its engine meanwhile.
func (b *builder) planAhead(batchRows int, end int64) {
	if b.source != target.FromHost || b.batch.oneByOne {
		return
	}
	before, moves := b.traffic.Planned, b.moves
	b.moves, b.planningAhead = b.ahead, true
	if b.aheadInBatch() {
		b.aheadOfBatch(batchRows, end)
	}
	b.ahead, b.moves, b.planningAhead = b.moves, moves, false
	b.traffic.Ahead = b.traffic.Planned - before
}

// aheadIsFull reports whether as much is planned ahead as a slice moves.
func (b *builder) aheadIsFull() (full bool) {
	var n uint64
	for _, m := range b.moves {
		n += m.Len
	}
	return n > min(maxSliceBytes, b.arena.input.size/2)
}

// aheadInBatch plans the windows of the portions of this mini-batch that are not in the slice. It reports whether there
// was room for all of them.
func (b *builder) aheadInBatch() bool {
	for i := range b.batch.portions {
		p := &b.batch.portions[i]
		if p.rowsLeft == 0 || b.isPlaced(i) {
			continue
		}
		rows := p.rowsLeft
		if p.maxTaskRows > 0 {
			rows = min(rows, p.maxTaskRows)
		}
		if b.aheadIsFull() || !b.placeAhead(i, rows) {
			return false
		}
	}
	return true
}

// aheadOfBatch plans the windows of the next mini-batch's rows in the chunks that this mini-batch does not end.
func (b *builder) aheadOfBatch(batchRows int, end int64) {
	next := b.batch.firstRow + int64(b.batch.rows)
	for i := range b.batch.portions {
		p := &b.batch.portions[i]
		c := p.chunk
		rows := min(int64(batchRows), end-next, c.firstRow+c.rows-next)
		if rows <= 0 {
			continue
		}
		if b.aheadIsFull() {
			return
		}
		switch {
		case b.isPlaced(i):
			b.extendAhead(c, int64(p.rowsLeft)+rows)
		case p.rowsLeft == 0 && !b.placeAhead(i, uint32(rows)):
			return
		}
	}
}

// isPlaced reports whether a portion has a task in the slice.
func (b *builder) isPlaced(i int) bool {
	_, placed := slices.BinarySearch(b.placed, i)
	return placed
}

// placeAhead plans the window of the next rows of a portion's chunk, whose cursor no task of this slice moves. Windows
// that are used later make way. It reports whether there is room.
func (b *builder) placeAhead(i int, rows uint32) bool {
	p := &b.batch.portions[i]
	c := p.chunk
	if c.lostDictionary() {
		return true // the cursor returns to the first page when the portion is placed
	}
	c.lastSlice = b.sliceNumber // so that nothing that is planned from here on takes its window
	rowsBefore := p.taskRows
	p.taskRows = rows
	ok := b.placeWindow(i, b.surveyor.columns.learnedPages(c))
	p.taskRows = rowsBefore
	return ok
}

// extendAhead plans the move after which the window of a chunk in the slice holds the given rows from the cursor on,
// if the window's segment has room for them.
func (b *builder) extendAhead(c *chunk, rows int64) {
	v, g := c.window, &b.surveyor.geometry
	if v == nil || v.sharers != 1 {
		return
	}
	page := c.start + c.cursor.Page
	_, hi := g.Cover(page, page+c.wantedInput(rows, b.surveyor.columns.learnedPages(c)))
	if hi > v.to && hi-v.from <= v.segment.size {
		b.planWindowMove(v, v.to, hi, c)
	}
}
