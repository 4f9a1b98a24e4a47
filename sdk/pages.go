package sdk

import (
	"errors"
	"sort"
	"sync"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// pages are where a chunk's data pages lie, from the file's offset index; nil where there is none. They only say what to
// move, and, for columns without lists, where to begin: page headers are what the engine goes by, and what a beginning is held against.
type pages []format.PageLocation

// readPages reads the offset index of a chunk, if that is worth a read. A damaged index is as good as none: nothing
// depends on it.
func (w *worker) readPages(c *chunk, leaf *format.Leaf) {
	if leaf == nil || w.direct || c.length <= small {
		return
	}
	at := [2]int{c.group, leaf.Index}
	l, known := w.part.indexes.find(at)
	if !known {
		var err error
		if l, err = format.ReadOffsetIndex(w.part, w.part.File, c.group, leaf.Index); err != nil || len(l) == 0 || l[0].FirstRow != 0 {
			l = nil
		}
		if err == nil || errors.Is(err, format.ErrCorrupt) { // the next reading may go better
			w.part.indexes.keep(at, l)
		}
	}
	c.pages = l
}

// mostLocations bounds the page locations remembered of a partition, 24 bytes each.
const mostLocations = 1 << 18

// indexes are the offset indexes of a partition that streams read, so that the next one need not. Those within it are never changed.
type indexes struct {
	mu    sync.Mutex // guards what follows
	known map[[2]int]pages
	count int
}

func (x *indexes) find(at [2]int) (pages, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p, ok := x.known[at]
	return p, ok
}

// keep remembers an index, nil for one that is not to be used, where there is room.
func (x *indexes) keep(at [2]int, p pages) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.count - len(x.known[at]) + len(p)
	if n > mostLocations {
		return
	}
	if x.known == nil {
		x.known = map[[2]int]pages{}
	}
	x.known[at], x.count = p, n
}

// at is the number of the page that begins at chunk offset off, the first one for what lies before it; -1 if there is
// none.
func (c *chunk) pageAt(off uint64) int {
	at := int64(c.at + off)
	i := sort.Search(len(c.pages), func(i int) bool { return c.pages[i].Offset >= at })
	if i == len(c.pages) || i > 0 && c.pages[i].Offset != at {
		return -1
	}
	return i
}

// span is how many bytes from the cursor's page on hold count rows behind the cursor; false if the index does not say.
func (c *chunk) indexed(count int64) (n uint64, ok bool) {
	i := c.pageAt(c.cursor.Page)
	if i < 0 {
		return 0, false
	}
	end := c.pages[i].FirstRow + int64(c.cursor.Skip) + count
	j := i + sort.Search(len(c.pages)-i-1, func(k int) bool { return c.pages[i+k+1].FirstRow >= end })
	if c.kind.MaxRep > 0 && j+1 < len(c.pages) && c.pages[j+1].FirstRow == end {
		j++ // only the next page tells whether a list ends with its page
	}
	return uint64(c.pages[j].Offset) + uint64(c.pages[j].Size) - c.at - c.cursor.Page, true
}

// left is how many rows of the cursor's page are left; 0 if that is not known.
func (c *chunk) left(k *learned) int64 {
	if i := c.pageAt(c.cursor.Page); i >= 0 {
		end := c.rows
		if i+1 < len(c.pages) {
			end = c.pages[i+1].FirstRow
		}
		return max(end-c.pages[i].FirstRow-int64(c.cursor.Skip), 0)
	}
	if c.cursor.Page < c.data {
		return 0
	}
	return max(k.rows-int64(c.cursor.Skip), 0)
}

// jump places a fresh cursor at the page of its row. Lists are walked: the number of values before a page is part of a
// cursor, and of lists the index does not tell it. An index that its page contradicts is dropped: to go by it would give other rows.
func (w *worker) jump(c *chunk, leaf *format.Leaf) {
	if len(c.pages) == 0 || c.kind.MaxRep > 0 || c.row == 0 {
		return
	}
	i := sort.Search(len(c.pages), func(i int) bool { return c.pages[i].FirstRow > c.row }) - 1
	if i <= 0 {
		return
	}
	if !w.holds(c, i) {
		c.pages = nil
		w.part.indexes.keep([2]int{c.group, leaf.Index}, nil)
		return
	}
	p := &c.pages[i]
	c.pageRow = p.FirstRow
	c.cursor = program.Cursor{
		Page: uint64(p.Offset) - c.at, Skip: uint64(c.row - p.FirstRow), Seen: uint64(p.FirstRow), Ordinal: uint32(i),
	}
	if c.data > 0 {
		c.cursor.Ordinal++ // the dictionary page, which is decoded before
	}
	c.had = c.coded
}

// header is how many bytes are read for a page header first; statistics make some longer.
const header = 512

// holds tells whether a page of a column without lists has as many rows as the index says.
func (w *worker) holds(c *chunk, i int) bool {
	p, end := &c.pages[i], c.rows
	if i+1 < len(c.pages) {
		end = c.pages[i+1].FirstRow
	}
	for _, most := range [...]int32{header, small} {
		b := make([]byte, min(most, p.Size))
		if n, err := w.part.ReadAt(b, p.Offset); n < len(b) && err != nil {
			return false
		}
		h, _, err := format.ParsePageHeader(b)
		if err == nil {
			return (h.Type == format.DataPage || h.Type == format.DataPageV2) && int64(h.NumValues) == end-p.FirstRow
		}
		if !errors.Is(err, format.ErrMoreInput) || len(b) == int(p.Size) {
			return false
		}
	}
	return false
}
