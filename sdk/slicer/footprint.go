package slicer

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/partition"
)

// maxNeed bounds an engine's requests, so that sums of needs do not overflow.
const maxNeed = 1 << 60

// footprint is the bytes that a portion wants of each of the three areas.
type footprint struct{ input, dict, scratch uint64 }

func (f footprint) totalBytes() uint64 { return f.input + f.dict + f.scratch }

// fitsInto reports whether a footprint fits into budget bytes.
func (f footprint) fitsInto(budget uint64) bool {
	return f.input <= budget && f.dict <= budget && f.scratch <= budget && f.totalBytes() <= budget
}

// plus adds footprints of portions that are in memory together. It never exceeds maxNeed.
func (f footprint) plus(g footprint) footprint {
	return footprint{min(f.input+g.input, maxNeed), min(f.dict+g.dict, maxNeed), min(f.scratch+g.scratch, maxNeed)}
}

// surveyor measures the memory that portions want.
type surveyor struct {
	columns  *columns
	batch    *miniBatch
	geometry partition.Geometry
	direct   bool // windows are not moved: the engine reads the partition where it lies
}

// groupSize returns how many portions from portion i on form one group: those of a map's leaves or of a graph's
// columns, or 1. The leaves of a map are columns like others, with chunks, cursors and windows of their own, but the
// engine reads them side by side: their portions, which follow each other, are in one slice or in none, and for the
// same rows.
func (s *surveyor) groupSize(i int) int {
	return s.columns.parts(s.batch.portions[i].chunk.column)
}

// parts returns how many columns are read together from column i on: one of text, whose task reads all fields.
func (c *columns) parts(i int) int {
	if c.program.Source != program.Parquet {
		return 1
	}
	return c.program.Parts(i)
}

// groupFrom returns the group of portions that begins at portion i.
func (s *surveyor) groupFrom(i int) []portion { return s.batch.portions[i:][:s.groupSize(i)] }

// portionFootprint returns the footprint of a portion when the areas are divided again. The division loses the
// dictionary, so a chunk that has a dictionary begins with it again and then goes back to its place: without room
// for both, the slicer would undo and repeat the division forever.
func (s *surveyor) portionFootprint(p *portion) (f footprint) {
	c := p.chunk
	if c.isAbsent() {
		return f
	}
	learned := s.columns.learnedPages(c)
	if !s.direct {
		f.input = s.windowSize(c, c.wantedInput(int64(p.taskRows), learned))
		f.input = max(f.input, s.dictionaryWindow(p))
		if c.resumeAt != nil {
			later := *c
			later.resumeAt, later.inputBytes, later.cursor = nil, 0, *c.resumeAt
			f.input = max(f.input, s.windowSize(&later, later.wantedInput(int64(p.taskRows), learned)))
		}
	}
	f.dict, f.scratch = roundUpToGrain(c.wantedDictionary(learned)), roundUpToGrain(c.wantedScratch(learned))
	return f
}

// groupFootprint returns the footprint of a group of portions.
func (s *surveyor) groupFootprint(group []portion) (f footprint) {
	for i := range group {
		f = f.plus(s.portionFootprint(&group[i]))
	}
	return f
}

// dictionaryWindow returns the window in which a chunk's dictionary is decoded once more; 0 if it has none.
func (s *surveyor) dictionaryWindow(p *portion) uint64 {
	c := p.chunk
	if !c.dictionaryDecoded || c.resumeAt != nil || c.cursor.Page == 0 {
		return 0
	}
	first := *c
	first.resumeAt, first.inputBytes, first.cursor = &c.cursor, 0, program.Cursor{Skip: uint64(c.row)}
	wanted := first.wantedInput(int64(p.taskRows), s.columns.learnedPages(c))
	return s.windowSize(&first, max(wanted, c.firstDataPage, c.firstPageInput))
}

// groupDictionaryWindow returns the windows that a group of portions wants when one of them decodes its dictionary
// once more.
func (s *surveyor) groupDictionaryWindow(group []portion) (n uint64) {
	for i := range group {
		n = min(n+s.dictionaryWindow(&group[i]), maxNeed)
	}
	return n
}

// windowSize returns the size of a window for n bytes of a chunk from the cursor's page on.
func (s *surveyor) windowSize(c *chunk, n uint64) uint64 {
	from := c.start + c.cursor.Page
	lo, hi := s.geometry.Cover(from, from+n)
	return roundUpToGrain(hi - lo)
}

// pendingFootprint returns the sum of the footprints of the portions from the first pending one on, in a circle that
// ends with those that are done, as far as the sum fits into budget, and the number of these portions.
func (s *surveyor) pendingFootprint(budget uint64) (sum footprint, n int) {
	b := s.batch
	for k, size := 0, 0; k < len(b.portions); k += size {
		i := (b.firstPending + k) % len(b.portions)
		if size = s.groupSize(i); b.portions[i].chunk.isFinished() {
			n += size // its memory is free
			continue
		}
		group := s.groupFootprint(b.portions[i:][:size])
		if !group.fitsInto(budget) || sum.totalBytes()+group.totalBytes() > budget {
			break
		}
		sum = footprint{sum.input + group.input, sum.dict + group.dict, sum.scratch + group.scratch}
		n += size
	}
	return sum, n
}

// residentFootprint returns how to share a memory that holds the dictionaries and unpacked pages of all portions,
// but not all their windows. Windows then come and go, and a page is moved once. ok is false if no window finds room
// beside the dictionaries and pages.
func (s *surveyor) residentFootprint(budget uint64) (sum footprint, ok bool) {
	b := s.batch
	for k, size := 0, 0; k < len(b.portions); k += size {
		if size = s.groupSize(k); b.portions[k].chunk.isFinished() {
			continue
		}
		group := s.groupFootprint(b.portions[k:][:size])
		sum = footprint{max(sum.input, group.input), sum.dict + group.dict, sum.scratch + group.scratch}
		if !sum.fitsInto(budget) {
			return footprint{}, false
		}
	}
	return sum, sum.scratch > 0
}
