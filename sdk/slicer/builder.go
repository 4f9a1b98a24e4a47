package slicer

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/target"
)

// maxAttempts guards against a fault of this package: "Why it ends" in the package comment counts fewer attempts.
const maxAttempts = 96

// builder builds a slice. Portions are placed in order, each with room for its dictionary, its unpacked page and its
// window, until the memory is full. Bytes of columns that are used later make way, those of the latest use first.
// Where everything fits, nothing ever makes way and windows only grow at their ends; where little fits, a mini-batch
// takes several slices, and a column whose pages do not fit together takes several tasks.
type builder struct {
	*memoryDivision
	batch    *miniBatch
	joining  joining
	source   target.Source // Where windows come from: the partition where it lies, or the host.
	maxTasks int
	maxMoves int // 0 means no limit

	sliceNumber   uint64 // number of the slice
	attemptNumber uint64 // number of the attempt at placing portions together
	trimmedFor    uint64 // slice that windows were trimmed for
	placed        []int  // portions of the slice
	moves         []target.Move
	runs          []partition.Run
	traffic       Traffic

	ahead         []target.Move // for later slices
	planningAhead bool          // moves are planned for later slices
}

// joining says which reads are joined.
type joining struct{ coalesce, gap uint64 }

// buildSlice places as many of the next portions as one slice takes, at least one.
func (b *builder) buildSlice() error {
	b.droppedWindows, b.cutInShare = false, false
	for range maxAttempts {
		again := b.placePortions()
		if len(b.placed) > 0 && !again {
			return nil
		}
		if !again {
			if err := b.makeRoomForNext(); err != nil {
				return err
			}
		}
	}
	return &target.EngineError{
		Partition: b.surveyor.columns.partition.Name, Message: "the planner found no place for a slice",
	}
}

// beginSlice begins the next slice.
func (b *builder) beginSlice() {
	b.sliceNumber++
	b.placed, b.moves, b.traffic = b.placed[:0], b.moves[:0], Traffic{}
}

// placePortions places portions until one finds no room. again is true when the memory was divided again, because an
// area was too small although the memory is not.
func (b *builder) placePortions() (again bool) {
	b.beginSlice()
	evictions, looked, bytes := b.arena.evictions, false, uint64(0)
	portions := b.batch.portions
	for i, n := b.batch.firstPending, 0; i < len(portions) && len(b.placed) < b.maxTasks; i += n {
		p := &portions[i]
		if n = b.surveyor.groupSize(i); p.rowsLeft == 0 {
			continue
		}
		if len(b.placed) > 0 && (b.batch.oneByOne || b.sliceIsFull(n, bytes)) {
			break
		}
		ok := b.placeGroup(i, n)
		if !looked && (!ok || b.arena.evictions != evictions) {
			if looked = true; b.shareIfCramped() {
				return true
			}
		}
		if !ok {
			break
		}
		for k := i; k < i+n; k++ {
			b.placed = append(b.placed, k)
			c := portions[k].chunk
			bytes += c.wantedInput(int64(p.taskRows), b.surveyor.columns.learnedPages(c))
		}
		if p.taskRows < p.rowsLeft && !b.output.outputSection().Fixed {
			break // the rest of its values comes before the next column's
		}
	}
	return false
}

// sliceIsFull reports whether a slice whose windows have the given bytes cannot take n further tasks.
func (b *builder) sliceIsFull(n int, bytes uint64) bool {
	most := uint64(maxSliceBytes)
	if b.source == target.FromHost {
		most = min(most, b.arena.input.size/2) // the other half is for the windows of the next slice
	}
	return len(b.placed)+n > b.maxTasks || bytes > most || b.maxMoves > 0 && len(b.moves) > b.maxMoves/2
}

// placeGroup finds room for a group of n portions, and reports whether there is some. The first windows may hold
// more than their portions want: room to grow, and the bytes between two chunks of a joined read. If the last
// windows lack room only for these extra bytes, the group is placed again without them.
func (b *builder) placeGroup(i, n int) bool {
	if n == 1 {
		b.attemptNumber++
		return b.placePortion(i)
	}
	growth, joins := b.windowGrowth, b.joining
	placed := b.placeMembers(i, n)
	if !placed {
		b.windowGrowth = 1
		placed = b.placeMembers(i, n)
	}
	if !placed {
		b.joining = joining{}
		placed = b.placeMembers(i, n)
	}
	b.windowGrowth, b.joining = growth, joins
	if !placed {
		return false
	}
	group := b.batch.portions[i:][:n]
	take := group[0].taskRows
	for k := range group {
		take = min(take, group[k].taskRows)
	}
	for k := range group {
		group[k].taskRows = take
	}
	return true
}

// placeMembers finds room for each of n portions, and reports whether there is some. If not, nothing is planned for any
// of them.
func (b *builder) placeMembers(i, n int) bool {
	b.attemptNumber++
	before := b.plannedMoves()
	for k := i; k < i+n; k++ {
		if !b.placePortion(k) {
			b.undoPlannedMoves(before)
			return false
		}
	}
	return true
}

// placePortion finds room for a portion, and reports whether there is some.
func (b *builder) placePortion(i int) bool {
	p := &b.batch.portions[i]
	c := p.chunk
	learned := b.surveyor.columns.learnedPages(c)
	c.lastSlice = b.sliceNumber
	if p.taskRows = p.rowsLeft; p.maxTaskRows > 0 {
		p.taskRows = min(p.taskRows, p.maxTaskRows)
	}
	return b.placeDictionary(c, learned) && b.placeScratch(c, learned) && b.placeWindow(i, learned)
}

func (b *builder) placeDictionary(c *chunk, learned *pageSizes) bool {
	want := c.wantedDictionary(learned)
	if c.dictSegment.size < c.dictBytes || c.dictSegment.size == 0 && want > 0 {
		b.arena.dropDictionary(c)
		var ok bool
		if c.dictSegment, ok = b.allocateEvicting(&b.arena.dict, want, c.dictBytes); !ok {
			return false
		}
	}
	c.rewindForDictionary()
	return true
}

func (b *builder) placeScratch(c *chunk, learned *pageSizes) bool {
	want := c.wantedScratch(learned)
	if c.scratchSegment.size >= c.scratchBytes && (c.scratchSegment.size > 0 || want == 0) {
		return true
	}
	b.arena.dropScratch(c)
	var ok bool
	c.scratchSegment, ok = b.allocateEvicting(&b.arena.scratch, want, c.scratchBytes)
	return ok
}

// allocateEvicting takes want bytes of an area, or at least least; others make way.
func (b *builder) allocateEvicting(from *area, want, least uint64) (segment, bool) {
	for {
		if s, ok := from.allocateSegment(want); ok {
			return s, true
		}
		if roundUpToGrain(want) <= from.size && (b.trimWindows() || b.evictFurthest(from)) {
			continue
		}
		if want == least {
			return segment{}, false
		}
		want = least
	}
}

// trimWindows frees the memory that windows have before their cursors and behind their bytes, once a slice, and
// reports whether there was any.
func (b *builder) trimWindows() (changed bool) {
	if b.trimmedFor == b.sliceNumber {
		return false
	}
	b.trimmedFor = b.sliceNumber
	input, g := &b.arena.input, &b.surveyor.geometry
	for i := range b.batch.portions {
		c := b.batch.portions[i].chunk
		v := c.window
		if v == nil || v.sharers > 1 || c.lastSlice == b.sliceNumber {
			continue
		}
		if at := min(g.Align(c.start+c.windowStart()), v.to); v.from < at {
			n := roundDownToGrain(at-v.from) &^ (g.Block() - 1)
			input.releaseSegment(segment{v.segment.offset, n})
			v.segment.offset, v.segment.size, v.from = v.segment.offset+n, v.segment.size-n, v.from+n
			changed = changed || n > 0
		}
		if used := roundUpToGrain(v.to - v.from); used < v.segment.size {
			input.releaseSegment(segment{v.segment.offset + used, v.segment.size - used})
			v.segment.size = used
			changed = true
		}
		if v.segment.size == 0 {
			c.window = nil
		}
	}
	return changed
}

// evictFurthest frees the part of an area that a chunk holds. Of the chunks that are not part of the slice, it chooses
// the chunk whose next use is furthest off; chunks are used in the portions' order, again and again. It reports whether
// there was such a chunk.
func (b *builder) evictFurthest(from *area) bool {
	portions := b.batch.portions
	for k := range portions {
		c := portions[(b.batch.firstPending-1-k+len(portions))%len(portions)].chunk
		if c.lastSlice != b.sliceNumber && b.arena.evictChunk(c, from) {
			return true
		}
	}
	return false
}

// appendTasks writes the tasks of the portions placed.
func (b *builder) appendTasks(tasks []program.Task) []program.Task {
	for _, i := range b.placed {
		p := &b.batch.portions[i]
		c := p.chunk
		c.cursor.Checked = c.cursor.Checked && c.checkedIn == c.window
		t := program.Task{
			Column: uint32(c.column), Row: p.firstRow, Count: p.taskRows, Chunk: c.kind, ChunkLen: c.length, Cursor: c.cursor,
			Dict:    program.Span{Off: c.dictSegment.offset, Len: c.dictSegment.size},
			Scratch: program.Span{Off: c.scratchSegment.offset, Len: c.scratchSegment.size},
		}
		t.Window, t.WindowAt = b.windowOfTask(c)
		p.windowEnd = t.WindowAt + t.Window.Len
		tasks = append(tasks, t)
	}
	return tasks
}
