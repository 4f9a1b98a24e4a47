package slicer

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/target"
)

// placeWindow plans the moves that bring the bytes that a portion wants into its window, and reports whether there is
// room.
func (b *builder) placeWindow(i int, learned *pageSizes) bool {
	if b.surveyor.direct {
		return true
	}
	p, g := &b.batch.portions[i], &b.surveyor.geometry
	c := p.chunk
	if c.isAbsent() {
		return true
	}
	n := c.wantedInput(int64(p.taskRows), learned)
	page, from := c.start+c.cursor.Page, c.start+c.windowStart()
	if page+n <= from || c.cursor.Unpacked && c.inputBytes == 0 && c.rowsLeftInPage(learned) >= int64(p.taskRows) {
		return true // all of it lies unpacked in scratch
	}
	lo, hi := g.Cover(from, page+n)
	if v := c.window; v != nil {
		if b.reuseWindow(p, learned, v, hi, n) {
			return true
		}
		b.arena.dropWindow(c)
	}
	if c.cursor.Page+n == c.length && b.gatherWindows(i, lo, hi) {
		return true
	}
	_, last := g.Cover(c.start, c.start+c.length)
	grown := min(max(hi-lo, uint64(float64(hi-lo)*b.windowGrowth)), last-lo)
	s, ok := b.arena.input.allocateSegment(grown)
	if !ok {
		if s, ok = b.allocateEvicting(&b.arena.input, hi-lo, hi-lo); !ok {
			return false
		}
	}
	c.window = &window{segment: s, from: lo, to: lo, sharers: 1}
	b.planWindowMove(c.window, lo, hi, c)
	return true
}

// reuseWindow uses the window that a portion's chunk has, if that window holds the wanted bytes, can grow to hold
// them up to aligned offset hi, or holds enough bytes to be worth a task. n are the bytes wanted from the cursor's
// page on.
func (b *builder) reuseWindow(p *portion, learned *pageSizes, v *window, hi, n uint64) bool {
	c, g := p.chunk, &b.surveyor.geometry
	page, at := g.Align(c.start+c.cursor.Page), g.Align(c.start+c.windowStart())
	switch holdsStart := v.from <= at; {
	case holdsStart && page+n <= v.to:
		return true
	case holdsStart && at < v.to && v.sharers == 1 && hi-v.from <= v.segment.size:
		b.planWindowMove(v, v.to, hi, c)
		return true
	case holdsStart && c.inputBytes == 0 && page+c.leastInput(int64(p.taskRows)) <= v.to:
		return true // the window may suffice; if it does not, the engine says so
	case holdsStart && c.inputBytes == 0 && b.cutAtPageEnd(p, learned, page, v.to):
		return true
	case c.rowsInWindow > 0 && c.rowsInWindow < p.taskRows && b.mayCutRows():
		p.taskRows = c.rowsInWindow // so that the bytes of these rows are not moved again
		return true
	}
	return false
}

// cutAtPageEnd ends a portion's next task at the end of the cursor's page, when that is known, lies inside the
// portion, and may suffice with the bytes of a window from aligned offset first to last. The rest begins with a
// page, and no byte that was moved before is moved again. A portion that is not cut here is left as it is:
// makeRoomForNext uses its size.
func (b *builder) cutAtPageEnd(p *portion, learned *pageSizes, first, last uint64) bool {
	left := p.chunk.rowsLeftInPage(learned)
	if left == 0 || left >= int64(p.taskRows) || !b.mayCutRows() || first+p.chunk.leastInput(left) > last {
		return false
	}
	p.taskRows = uint32(left)
	return true
}

// gatherWindows joins the window of portion i, aligned offsets [lo, hi), with those of portions behind it whose chunks
// follow in the file, as far as one read goes. It reports whether there are any, and room.
func (b *builder) gatherWindows(i int, lo, hi uint64) bool {
	g, last := &b.surveyor.geometry, i
	start := lo
	for k := i + 1; k < len(b.batch.portions); k++ {
		p := &b.batch.portions[k]
		c := p.chunk
		if b.planningAhead && c.lastSlice == b.sliceNumber {
			break // its task is written, without this window
		}
		n := c.wantedInput(int64(p.taskRows), b.surveyor.columns.learnedPages(c))
		from, to := g.Cover(c.start+c.windowStart(), c.start+max(c.cursor.Page+n, c.windowStart()))
		if c.isAbsent() || c.isFinished() || c.window != nil || c.cursor.Page+n != c.length || from < start ||
			from > hi+b.joining.gap || max(to, hi)-lo > b.joining.coalesce {
			break
		}
		start, hi, last = from, max(to, hi), k
	}
	if last == i {
		return false
	}
	s, ok := b.arena.input.allocateSegment(hi - lo)
	if !ok {
		return false
	}
	v := &window{segment: s, from: lo, to: lo, sharers: last - i + 1}
	chunks := make([]*chunk, 0, v.sharers)
	for k := i; k <= last; k++ {
		b.batch.portions[k].chunk.window = v
		chunks = append(chunks, b.batch.portions[k].chunk)
	}
	b.planWindowMove(v, lo, hi, chunks...)
	return true
}

// planWindowMove plans the move of aligned offsets [lo, hi) to the window's end and counts which of the chunks' bytes
// were moved before.
func (b *builder) planWindowMove(v *window, lo, hi uint64, chunks ...*chunk) {
	g := &b.surveyor.geometry
	b.runs = g.AppendRuns(b.runs[:0], lo, hi)
	b.moves = appendMoves(b.moves, b.source, b.runs, b.arena.inputAddress(v.segment.offset+lo-v.from))
	v.to, v.lastAttempt = hi, b.attemptNumber
	for _, c := range chunks {
		begin := g.Align(c.start)
		from, to := max(lo, begin), min(hi, begin+c.length)
		if from >= to {
			continue
		}
		if moved := begin + c.movedUpTo; moved > from {
			b.traffic.Reread += min(moved, to) - from
		}
		c.movedUpTo = max(c.movedUpTo, to-begin)
	}
	b.traffic.Planned += hi - lo
}

// appendMoves appends the moves that bring runs of the partition to address to. A move that continues the
// previous move, at its source and in memory, is joined with it.
func appendMoves(moves []target.Move, source target.Source, runs []partition.Run, to uint64) []target.Move {
	for _, r := range runs {
		if k := len(moves) - 1; k >= 0 && moves[k].From+moves[k].Len == r.From && moves[k].To+moves[k].Len == to {
			moves[k].Len += r.Len
		} else {
			moves = append(moves, target.Move{Source: source, From: r.From, Len: r.Len, To: to})
		}
		to += r.Len
	}
	return moves
}

// plannedMoves is the state of a slice's moves before some portions are placed.
type plannedMoves struct {
	moves   int
	last    target.Move // others may be joined with it later
	traffic Traffic
}

func (b *builder) plannedMoves() plannedMoves {
	p := plannedMoves{moves: len(b.moves), traffic: b.traffic}
	if p.moves > 0 {
		p.last = b.moves[p.moves-1]
	}
	return p
}

// undoPlannedMoves takes back the moves of the current attempt, and the windows that they were for.
func (b *builder) undoPlannedMoves(to plannedMoves) {
	for i := range b.batch.portions {
		if c := b.batch.portions[i].chunk; c.window != nil && c.window.lastAttempt == b.attemptNumber {
			b.arena.dropWindow(c)
		}
	}
	if b.moves = b.moves[:to.moves]; to.moves > 0 {
		b.moves[to.moves-1] = to.last
	}
	b.traffic = to.traffic
}

// windowOfTask returns where in the input range the chunk's bytes lie from chunk offset from on: the cursor's page
// or, if that page lies unpacked in scratch and not in the window, the bytes behind it.
func (b *builder) windowOfTask(c *chunk) (s program.Span, from uint64) {
	if from = c.cursor.Page; c.isAbsent() {
		return program.Span{}, from
	}
	if b.surveyor.direct {
		return program.Span{Off: c.start + from, Len: c.length - from}, from
	}
	v, g := c.window, &b.surveyor.geometry
	holds := func(offset uint64) bool {
		at := g.Align(c.start + offset)
		return v != nil && v.from <= at && at < v.to
	}
	if !holds(from) {
		if from = c.windowStart(); !holds(from) {
			return program.Span{}, from
		}
	}
	at := g.Align(c.start + from)
	end := min(v.to, g.Align(c.start+c.length))
	return program.Span{Off: v.segment.offset + at - v.from, Len: end - min(at, end)}, from
}
