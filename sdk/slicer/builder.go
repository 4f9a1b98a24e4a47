package slicer

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/target"
)

// maxAttempts bounds the attempts at building a slice; see "Why it ends" in the package comment.
const maxAttempts = 256

// builder builds a slice. Portions are placed in order, each with room for its dictionary, its unpacked page and its
// window, until the memory is full; what columns further off left in memory makes way, furthest first. Where everything
// fits, nothing ever makes way and windows only grow at their ends; where little fits, a mini-batch takes several
// slices, and a column whose pages do not fit together takes several tasks.
type builder struct {
	*sharing
	batch    *miniBatch
	joining  joining
	maxTasks int
	maxMoves int // 0 means no limit

	slice   uint64 // number of the slice
	attempt uint64 // number of the attempt at placing portions together
	trimmed uint64 // slice that windows were trimmed for
	placed  []int  // portions of the slice
	moves   []target.Move
	runs    []partition.Run
	traffic Traffic
}

// joining says which reads are joined.
type joining struct{ coalesce, gap uint64 }

// build places as many of the next portions as one slice takes, at least one.
func (b *builder) build() error {
	b.droppedWindows = false
	for attempt := range maxAttempts {
		b.batch.oneByOne = b.batch.oneByOne || attempt >= maxAttempts/2
		again := b.placeSome()
		if len(b.placed) > 0 && !again {
			return nil
		}
		if !again {
			if err := b.makeRoom(); err != nil {
				return err
			}
		}
	}
	return &target.EngineError{
		Partition: b.surveyor.columns.partition.Name, Message: "the planner found no place for a slice",
	}
}

// begin begins the next slice.
func (b *builder) begin() {
	b.slice++
	b.placed, b.moves, b.traffic = b.placed[:0], b.moves[:0], Traffic{}
}

// placeSome places portions until one finds no room. again is true when the memory was divided again, because an area
// was too small although the memory is not.
func (b *builder) placeSome() (again bool) {
	b.begin()
	evictions, looked, bytes := b.arena.evictions, false, uint64(0)
	portions := b.batch.portions
	for i, n := b.batch.firstPending, 0; i < len(portions) && len(b.placed) < b.maxTasks; i += n {
		p := &portions[i]
		if n = b.surveyor.together(i); p.count == 0 {
			continue
		}
		if len(b.placed) > 0 && (b.batch.oneByOne || b.isFull(n, bytes)) {
			break
		}
		ok := b.placeTogether(i, n)
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
			bytes += c.wantedInput(int64(p.take), b.surveyor.columns.pages(c))
		}
		if p.take < p.count && !b.output.layout().Fixed {
			break // the rest of its values comes before the next column's
		}
	}
	return false
}

// isFull reports whether a slice with windows of so many bytes takes no n further tasks.
func (b *builder) isFull(n int, bytes uint64) bool {
	return len(b.placed)+n > b.maxTasks || bytes > maxSliceBytes || b.maxMoves > 0 && len(b.moves) > b.maxMoves/2
}

// placeTogether finds room for n portions that are one, and reports whether there is some.
func (b *builder) placeTogether(i, n int) bool {
	b.attempt++
	if n == 1 {
		return b.place(i)
	}
	before, growth := b.plannedMoves(), b.windowGrowth
	ok := b.placeEach(i, n)
	if !ok {
		// What one had beyond its window may be what the next one lacked.
		b.undoMoves(before)
		b.windowGrowth = 1
		b.attempt++
		if ok = b.placeEach(i, n); !ok {
			b.undoMoves(before)
		}
		b.windowGrowth = growth
	}
	if !ok {
		return false
	}
	group := b.batch.portions[i:][:n]
	take := group[0].take
	for k := range group {
		take = min(take, group[k].take)
	}
	for k := range group {
		group[k].take = take
	}
	return true
}

func (b *builder) placeEach(i, n int) bool {
	for k := i; k < i+n; k++ {
		if !b.place(k) {
			return false
		}
	}
	return true
}

// place finds room for a portion, and reports whether there is some.
func (b *builder) place(i int) bool {
	p := &b.batch.portions[i]
	c := p.chunk
	k := b.surveyor.columns.pages(c)
	c.lastSlice = b.slice
	if p.take = p.count; p.mostRows > 0 {
		p.take = min(p.take, p.mostRows)
	}
	return b.placeDict(c, k) && b.placeRoom(c, k) && b.placeWindow(i, k)
}

func (b *builder) placeDict(c *chunk, k *pageSizes) bool {
	want := c.wantedDict(k)
	if c.dictSpan.size < c.dict || c.dictSpan.size == 0 && want > 0 {
		b.arena.dropDict(c)
		var ok bool
		if c.dictSpan, ok = b.allocate(&b.arena.dict, want, c.dict); !ok {
			return false
		}
	}
	c.rewindForDict()
	return true
}

func (b *builder) placeRoom(c *chunk, k *pageSizes) bool {
	want := c.wantedRoom(k)
	if c.roomSpan.size >= c.room && (c.roomSpan.size > 0 || want == 0) {
		return true
	}
	b.arena.dropRoom(c)
	var ok bool
	c.roomSpan, ok = b.allocate(&b.arena.room, want, c.room)
	return ok
}

// allocate takes want bytes of an area, or at least least; others make way.
func (b *builder) allocate(from *area, want, least uint64) (segment, bool) {
	for {
		if s, ok := from.allocate(want); ok {
			return s, true
		}
		if roundUp(want) <= from.size && (b.trimWindows() || b.evictFurthest(from)) {
			continue
		}
		if want == least {
			return segment{}, false
		}
		want = least
	}
}

// trimWindows takes what windows have before their cursors and behind their bytes, once a slice, and reports whether
// that was anything.
func (b *builder) trimWindows() (changed bool) {
	if b.trimmed == b.slice {
		return false
	}
	b.trimmed = b.slice
	input, g := &b.arena.input, &b.surveyor.geometry
	for i := range b.batch.portions {
		c := b.batch.portions[i].chunk
		v := c.window
		if v == nil || v.users > 1 || c.lastSlice == b.slice {
			continue
		}
		if at := min(g.Align(c.start+c.windowStart()), v.to); v.from < at {
			n := roundDown(at-v.from) &^ (g.Block() - 1)
			input.release(segment{v.segment.offset, n})
			v.segment.offset, v.segment.size, v.from = v.segment.offset+n, v.segment.size-n, v.from+n
			changed = changed || n > 0
		}
		if used := roundUp(v.to - v.from); used < v.segment.size {
			input.release(segment{v.segment.offset + used, v.segment.size - used})
			v.segment.size = used
			changed = true
		}
		if v.segment.size == 0 {
			c.window = nil
		}
	}
	return changed
}

// evictFurthest takes what the chunk whose next use is furthest off, and that is not part of the slice, has of an area.
// Chunks are used in the portions' order, over and over. It reports whether there was such a chunk.
func (b *builder) evictFurthest(from *area) bool {
	portions := b.batch.portions
	for k := range portions {
		c := portions[(b.batch.firstPending-1-k+len(portions))%len(portions)].chunk
		if c.lastSlice != b.slice && b.arena.evict(c, from) {
			return true
		}
	}
	return false
}

// addTasks writes the tasks of the portions placed.
func (b *builder) addTasks(tasks []program.Task) []program.Task {
	for _, i := range b.placed {
		p := &b.batch.portions[i]
		c := p.chunk
		c.cursor.Checked = c.cursor.Checked && c.checked == c.window
		t := program.Task{
			Column: uint32(c.column), Row: p.row, Count: p.take, Chunk: c.kind, ChunkLen: c.length, Cursor: c.cursor,
			Dict:    program.Span{Off: c.dictSpan.offset, Len: c.dictSpan.size},
			Scratch: program.Span{Off: c.roomSpan.offset, Len: c.roomSpan.size},
		}
		t.Window, t.WindowAt = b.windowSpan(c)
		tasks = append(tasks, t)
	}
	return tasks
}
