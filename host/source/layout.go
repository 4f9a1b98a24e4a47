package source

import (
	"slices"
	"sort"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// layout says which bytes of a source will be read: of a Parquet file the column chunks of the leaves that a pipeline
// reads, and of those the part that holds the rows of the open streams, as far as the footer shows it. A layout only
// decides how much is asked for at once and ahead; a read outside the layout succeeds too.
type layout struct {
	groups []rowGroup   // without rows if they were not counted
	chunks []chunkPlace // sorted by from
}

// rowGroup is the rows of a row group.
type rowGroup struct{ first, end int64 }

// chunkPlace is where a column chunk lies.
type chunkPlace struct {
	interval
	firstPage int64 // The first data page begins here; the bytes before it are the dictionary.
	group     int
	leaf      int
}

// wholeLayout is the layout of a source of size bytes that is one run of rows.
func wholeLayout(size, rows int64) layout {
	return layout{groups: []rowGroup{{0, rows}}, chunks: []chunkPlace{{interval: interval{0, size}}}}
}

// parquetLayout is the layout of leaves of a Parquet file, by their number.
func parquetLayout(f *format.File, leaves map[int]bool) layout {
	var l layout
	row := int64(0)
	for g := range f.RowGroups {
		group := &f.RowGroups[g]
		l.groups = append(l.groups, rowGroup{row, row + group.Rows})
		row += group.Rows
		for i := range group.Columns {
			chunk := &group.Columns[i]
			if chunk.Compressed <= 0 || !leaves[i] {
				continue
			}
			place := chunkPlace{
				interval: interval{chunk.Offset, chunk.Offset + chunk.Compressed}, firstPage: chunk.DataOffset, group: g, leaf: i,
			}
			place.firstPage = min(max(place.firstPage, place.from), place.to)
			l.chunks = append(l.chunks, place)
		}
	}
	slices.SortFunc(l.chunks, func(a, b chunkPlace) int { return int(min(max(a.from-b.from, -1), 1)) })
	return l
}

// mostChunksOfGroup returns the greatest number of chunks of one row group.
func (l *layout) mostChunksOfGroup() int {
	count := make([]int, len(l.groups))
	most := 1
	for i := range l.chunks {
		g := l.chunks[i].group
		count[g]++
		most = max(most, count[g])
	}
	return most
}

// findChunk returns the number of the first chunk that ends behind a byte, or the number of chunks.
func (l *layout) findChunk(at int64) int {
	return sort.Search(len(l.chunks), func(i int) bool { return l.chunks[i].to > at })
}

// slackBytes and slackShare are how much more of a chunk than the share of its rows is expected to be read: pages lie
// across the ends of a split.
const (
	slackBytes = 32 << 10
	slackShare = 32 // a part of the chunk
)

// expectedPart returns the part of a chunk that holds rows of streams, as far as rows are spread evenly over it.
// Without streams it is the whole chunk. ok is false where no stream reads the chunk.
func (l *layout) expectedPart(c *chunkPlace, streams []rowGroup) (part interval, ok bool) {
	g := l.groups[c.group]
	if len(streams) == 0 || g.first == g.end {
		return c.interval, true
	}
	for _, s := range streams {
		first, end := max(s.first, g.first), min(s.end, g.end)
		if first >= end {
			continue
		}
		rows, bytes := float64(g.end-g.first), float64(c.to-c.firstPage)
		slack := slackBytes + (c.to-c.from)/slackShare
		from := max(c.firstPage+int64(float64(first-g.first)/rows*bytes)-slack, c.from)
		to := min(c.firstPage+int64(float64(end-g.first)/rows*bytes)+slack, c.to)
		if !ok {
			part, ok = interval{from, to}, true
			continue
		}
		part.from, part.to = min(part.from, from), max(part.to, to)
	}
	return part, ok
}

// requestEnd returns where a request that begins at a byte ends: behind the last byte that is expected to be read
// before limit, and not before least.
func (l *layout) requestEnd(at, least, limit int64, streams []rowGroup) int64 {
	end := least
	for i := l.findChunk(at); i < len(l.chunks) && l.chunks[i].from < limit; i++ {
		c := &l.chunks[i]
		part, ok := l.expectedPart(c, streams)
		if ok && part.to > at && part.from < limit {
			end = max(end, min(part.to, limit))
		}
	}
	return end
}

// nextRead returns the byte that is read after the bytes [from, to) of a request: to, while more of the chunk there is
// expected to be read, otherwise the first byte of the next row group in the column that the request began with.
func (l *layout) nextRead(from, to int64, streams []rowGroup) (at int64, ok bool) {
	i := l.findChunk(to - 1)
	if i == len(l.chunks) || l.chunks[i].from >= to {
		return 0, false
	}
	if part, ok := l.expectedPart(&l.chunks[i], streams); ok && part.from <= to && to < part.to {
		return to, true
	}
	begun := &l.chunks[l.findChunk(from)]
	for i++; i < len(l.chunks); i++ {
		c := &l.chunks[i]
		if c.group == begun.group+1 && c.leaf == begun.leaf {
			part, ok := l.expectedPart(c, streams)
			return part.from, ok
		}
	}
	return 0, false
}
