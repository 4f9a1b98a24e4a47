package partition

import (
	"errors"
	"sort"
	"sync"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// maxPageLocations bounds the page locations that a partition remembers, 24 bytes each.
const maxPageLocations = 1 << 18

// headerReads are how many bytes are read for a page header first, and then where statistics make it longer.
var headerReads = [...]int32{512, 64 << 10}

// PageIndex says where a chunk's data pages lie, from the file's offset index; nil where there is none. A page index
// only says what to move and, for columns without lists, where to begin: the engine goes by page headers, and a
// beginning is compared with one. It is never changed.
type PageIndex []format.PageLocation

// Find returns the number of the page that begins at an offset of the file, 0 for an offset before the first page, or
// -1 if no page begins there.
func (x PageIndex) Find(offset int64) int {
	i := sort.Search(len(x), func(i int) bool { return x[i].Offset >= offset })
	if i == len(x) || i > 0 && x[i].Offset != offset {
		return -1
	}
	return i
}

// PageOf returns the number of the page that a row of the row group lies in, or -1 for an empty index.
func (x PageIndex) PageOf(row int64) int {
	return sort.Search(len(x), func(i int) bool { return x[i].FirstRow > row }) - 1
}

// EndRow returns the row behind page i of a row group that has the given number of rows.
func (x PageIndex) EndRow(i int, rows int64) int64 {
	if i+1 < len(x) {
		return x[i+1].FirstRow
	}
	return rows
}

// pageIndexes are the page indexes that streams read, so that the next stream need not.
type pageIndexes struct {
	mu      sync.Mutex // guards what follows
	byChunk map[chunkID]PageIndex
	count   int
}

func (x *pageIndexes) find(id chunkID) (PageIndex, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p, ok := x.byChunk[id]
	return p, ok
}

// keep remembers an index if there is room. A nil index records that the chunk has no index to use.
func (x *pageIndexes) keep(id chunkID, p PageIndex) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.count - len(x.byChunk[id]) + len(p)
	if n > maxPageLocations {
		return
	}
	if x.byChunk == nil {
		x.byChunk = map[chunkID]PageIndex{}
	}
	x.byChunk[id], x.count = p, n
}

// ReadPageIndex returns the page index of a leaf's chunk in a row group, for a stream that begins at a row of it. A
// damaged index is as good as none: nothing depends on it. An index whose entry for the row's page contradicts that
// page's header is dropped, since to begin by it would give other rows; lists are not begun by it.
func (p *Partition) ReadPageIndex(group int, leaf *format.Leaf, row int64) PageIndex {
	id := chunkID{group, leaf.Index}
	x, known := p.indexes.find(id)
	if !known {
		var err error
		if x, err = format.ReadOffsetIndex(p, p.File, group, leaf.Index); err != nil || len(x) == 0 || x[0].FirstRow != 0 {
			x = nil
		}
		if err == nil || errors.Is(err, format.ErrCorrupt) { // after another error the next reading may go better
			p.indexes.keep(id, x)
		}
	}
	if leaf.MaxRep > 0 || row == 0 {
		return x
	}
	if i := x.PageOf(row); i > 0 && !p.headerAgrees(x, i, p.groups[group].Rows) {
		p.indexes.keep(id, nil)
		return nil
	}
	return x
}

// headerAgrees reports whether page i of a column without lists has as many rows as the index says.
func (p *Partition) headerAgrees(x PageIndex, i int, rows int64) bool {
	values, ok := p.valuesOfPage(x[i].Offset, int64(x[i].Size))
	return ok && values == x.EndRow(i, rows)-x[i].FirstRow
}

// valuesOfPage returns how many values the header of the page at an offset of the file counts. size bounds the page. ok
// is false if no data page begins there.
func (p *Partition) valuesOfPage(offset, size int64) (values int64, ok bool) {
	for _, most := range headerReads {
		b := make([]byte, min(int64(most), size))
		if n, err := p.ReadAt(b, offset); n < len(b) && err != nil {
			return 0, false
		}
		h, _, err := format.ParsePageHeader(b)
		if err == nil {
			return int64(h.NumValues), h.Type == format.DataPage || h.Type == format.DataPageV2
		}
		if !errors.Is(err, format.ErrMoreInput) || int64(len(b)) == size {
			return 0, false
		}
	}
	return 0, false
}
