package slicer

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/partition"
)

// maxNeed bounds what an engine may ask for, so that sums of needs do not overflow.
const maxNeed = 1 << 60

// footprint is what a portion wants of the three areas, in bytes.
type footprint struct{ input, dict, room uint64 }

func (f footprint) sum() uint64 { return f.input + f.dict + f.room }

// fits reports whether a footprint fits into so many bytes.
func (f footprint) fits(budget uint64) bool {
	return f.input <= budget && f.dict <= budget && f.room <= budget && f.sum() <= budget
}

// plus adds footprints of portions that are in memory together. It never exceeds maxNeed.
func (f footprint) plus(g footprint) footprint {
	return footprint{min(f.input+g.input, maxNeed), min(f.dict+g.dict, maxNeed), min(f.room+g.room, maxNeed)}
}

// surveyor measures what portions want of memory.
type surveyor struct {
	columns  *columns
	batch    *miniBatch
	geometry partition.Geometry
	direct   bool // windows are not moved: the engine reads the partition where it lies
}

// together returns how many portions from portion i on are one: those of a map's leaves, or 1. The leaves of a map are
// columns like others, with chunks, cursors and windows of their own, but the engine reads them side by side: their
// portions, which follow each other, are in one slice or in none, and for the same rows.
func (s *surveyor) together(i int) int {
	return s.columns.program.Parts(s.batch.portions[i].chunk.column)
}

// groupAt returns the portions from portion i on that are one.
func (s *surveyor) groupAt(i int) []portion { return s.batch.portions[i:][:s.together(i)] }

// footprintOf returns what a portion wants of the areas when they are divided again. That loses the dictionary, so a
// chunk that has one begins with it again, and one that does goes back to where it was: without room for both, dividing
// would be undone and done forever.
func (s *surveyor) footprintOf(p *portion) (f footprint) {
	c := p.chunk
	k := s.columns.pages(c)
	if !s.direct {
		f.input = s.windowSize(c, c.wantedInput(int64(p.take), k))
		f.input = max(f.input, s.dictWindow(p))
		if c.resume != nil {
			later := *c
			later.resume, later.input, later.cursor = nil, 0, *c.resume
			f.input = max(f.input, s.windowSize(&later, later.wantedInput(int64(p.take), k)))
		}
	}
	f.dict, f.room = roundUp(c.wantedDict(k)), roundUp(c.wantedRoom(k))
	return f
}

// groupFootprint returns the footprint of portions that are one.
func (s *surveyor) groupFootprint(group []portion) (f footprint) {
	for i := range group {
		f = f.plus(s.footprintOf(&group[i]))
	}
	return f
}

// dictWindow returns the window in which a chunk's dictionary is decoded once more; 0 if it has none.
func (s *surveyor) dictWindow(p *portion) uint64 {
	c := p.chunk
	if !c.hasDict || c.resume != nil || c.cursor.Page == 0 {
		return 0
	}
	first := *c
	first.resume, first.input, first.cursor = &c.cursor, 0, program.Cursor{Skip: uint64(c.row)}
	return s.windowSize(&first, max(first.wantedInput(int64(p.take), s.columns.pages(c)), c.dataPage, c.opening))
}

// groupDictWindow returns the windows that portions which are one want when one decodes its dictionary once more.
func (s *surveyor) groupDictWindow(group []portion) (n uint64) {
	for i := range group {
		n = min(n+s.dictWindow(&group[i]), maxNeed)
	}
	return n
}

// windowSize returns the size of a window for n bytes of a chunk from the cursor's page on.
func (s *surveyor) windowSize(c *chunk, n uint64) uint64 {
	from := c.start + c.cursor.Page
	lo, hi := s.geometry.Cover(from, from+n)
	return roundUp(hi - lo)
}

// total returns what the portions from the first pending one on want, around to those that are done, as far as budget
// goes, and how many portions that are.
func (s *surveyor) total(budget uint64) (sum footprint, n int) {
	b := s.batch
	for k, m := 0, 0; k < len(b.portions); k += m {
		i := (b.firstPending + k) % len(b.portions)
		if m = s.together(i); b.portions[i].chunk.ended() {
			n += m // its memory is free
			continue
		}
		f := s.groupFootprint(b.portions[i:][:m])
		if !f.fits(budget) || sum.sum()+f.sum() > budget {
			break
		}
		sum = footprint{sum.input + f.input, sum.dict + f.dict, sum.room + f.room}
		n += m
	}
	return sum, n
}

// resident returns how to share the memory when it does not hold all that the portions want, but their dictionaries and
// unpacked pages: windows come and go then, and a page is moved once. It is not ok when no window finds room beside
// those.
func (s *surveyor) resident(budget uint64) (sum footprint, ok bool) {
	b := s.batch
	for k, m := 0, 0; k < len(b.portions); k += m {
		if m = s.together(k); b.portions[k].chunk.ended() {
			continue
		}
		f := s.groupFootprint(b.portions[k:][:m])
		sum = footprint{max(sum.input, f.input), sum.dict + f.dict, sum.room + f.room}
		if !sum.fits(budget) {
			return footprint{}, false
		}
	}
	return sum, sum.room > 0
}
