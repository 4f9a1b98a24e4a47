package slicer

import "github.com/millrace/millrace/sdk/partition"

// miniBatch is the remaining work of the mini-batch in the making.
type miniBatch struct {
	firstRow     int64 // The first row's number in the partition.
	rows         uint32
	rowGroups    []groupRows // its rows by row group
	portions     []portion   // in the program's order
	firstPending int         // portions before it are done

	// oneByOne places the portions one by one. A chunk's wants are forgotten when its memory goes to others, so that
	// several chunks may take memory from each other in turn without end. A single portion grows to the size that it
	// needs, or the error names that size.
	oneByOne bool
}

// groupRows is the part of a mini-batch's rows that lies in one row group.
type groupRows struct {
	group int
	row   uint32 // The row's number in the mini-batch.
	rows  uint32
}

// beginRows begins the mini-batch of some rows of a partition.
func (b *miniBatch) beginRows(first int64, rows uint32, p *partition.Partition) {
	b.firstRow, b.rows = first, rows
	b.rowGroups, b.portions, b.firstPending, b.oneByOne = b.rowGroups[:0], b.portions[:0], 0, false
	groups, end := p.RowGroups(), first+int64(rows)
	for g, at := p.RowGroupOf(first), first; at < end; g++ {
		if until := min(end, groups[g].End()); until > at {
			b.rowGroups = append(b.rowGroups, groupRows{group: g, row: uint32(at - first), rows: uint32(until - at)})
			at = until
		}
	}
}

// mostRowGroups returns the most row groups in which one mini-batch of a run of rows lies, empty ones included.
func mostRowGroups(p *partition.Partition, r Rows) int {
	groups, most, batch, end := p.RowGroups(), 1, int64(r.Batch), r.First+r.Count
	begin := r.First // of a mini-batch
	if r.FirstBatch > 0 {
		begin -= batch - int64(r.FirstBatch) // as if the first one were whole
	}
	for g := p.RowGroupOf(r.First); g < len(groups) && groups[g].First < end; {
		begin += (groups[g].End() - 1 - begin) / batch * batch // The row group's last row is in this mini-batch.
		last := p.RowGroupOf(min(begin+batch, end) - 1)
		most = max(most, last-g+1)
		g = max(last, g+1)
	}
	return most
}

// portion is the remaining work of one chunk for a mini-batch.
type portion struct {
	chunk       *chunk
	firstRow    uint32 // The first row's number in the mini-batch.
	rowsLeft    uint32 // rows left
	taskRows    uint32 // rows of the next task: rowsLeft, or fewer where memory is short
	maxTaskRows uint32 // bound on taskRows; 0 means none

	windowEnd uint64 // chunk offset behind the window of the last task; the window may have grown since
}

// isFinished reports whether all portions are done.
func (b *miniBatch) isFinished() bool { return b.firstPending >= len(b.portions) }

// neededBytes returns Done.Needed of a mini-batch that is done.
func (b *miniBatch) neededBytes() (n uint64) {
	for i := range b.portions {
		c := b.portions[i].chunk
		for _, r := range b.rowGroups {
			if r.group == c.group {
				n += c.bytesOfRows(c.row) - c.bytesOfRows(c.row-int64(r.rows))
			}
		}
	}
	return n
}

// skipFinished moves firstPending behind the portions that are done.
func (b *miniBatch) skipFinished() {
	for !b.isFinished() && b.portions[b.firstPending].rowsLeft == 0 {
		b.firstPending++
	}
}

// reduceGuesses lets the chunks of portions guess no more than a level allows, and reports whether any of them
// guessed more before.
func reduceGuesses(group []portion, to guessLevel) (changed bool) {
	for i := range group {
		if c := group[i].chunk; c.guesses < to {
			c.guesses, changed = to, true
		}
	}
	return changed
}

// mostDemandingChunk returns the chunk for which the engine asked most.
func mostDemandingChunk(group []portion) *chunk {
	c := group[0].chunk
	for i := range group {
		if other := group[i].chunk; other.demandedBytes() > c.demandedBytes() {
			c = other
		}
	}
	return c
}
