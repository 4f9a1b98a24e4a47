package processor

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/target"
)

// noteResume remembers in the partition where a chunk stands.
func (c *chunk) noteResume(p *partition.Partition, leaf int) {
	if c.resume != nil || c.cursor.Page == 0 {
		return
	}
	skip := int64(min(c.cursor.Skip, uint64(c.row)))
	at := partition.ResumePoint{Row: c.row, Cursor: c.cursor, PageRow: c.pageRow, HasDict: c.had}
	if c.row-skip > 0 && at.PageRow != c.row-skip {
		at.PageRow = c.row - skip
	}
	at.Cursor.Dict, at.Cursor.Unpacked, at.Cursor.Checked = false, false, false
	p.NoteResumePoint(c.group, leaf, at)
}

// findResume places a fresh chunk's cursor at the last place known before its row.
func (c *chunk) findResume(p *partition.Partition, leaf int) {
	at, ok := p.ResumePointBefore(c.group, leaf, c.row)
	if !ok || at.Cursor.Page <= c.cursor.Page {
		return
	}
	c.cursor, c.pageRow, c.had = at.Cursor, at.PageRow, at.HasDict
	c.cursor.Skip += uint64(c.row - at.Row)
}

// readPages reads the offset index of a chunk, if that is worth a read.
func (w *worker) readPages(c *chunk, leaf *format.Leaf) {
	if leaf != nil && !w.direct && c.length > small {
		c.pages = w.part.ReadPageIndex(c.group, leaf, c.row)
	}
}

// pageAt is the number of the page that begins at chunk offset off, the first one for what lies before it; -1 if there is
// none.
func (c *chunk) pageAt(off uint64) int { return c.pages.Find(int64(c.at + off)) }

// indexed is how many bytes from the cursor's page on hold count rows behind the cursor; false if the index does not say.
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
		return max(c.pages.EndRow(i, c.rows)-c.pages[i].FirstRow-int64(c.cursor.Skip), 0)
	}
	if c.cursor.Page < c.data {
		return 0
	}
	return max(k.rows-int64(c.cursor.Skip), 0)
}

// jump places a fresh cursor at the page of its row. Lists are walked: the number of values before a page is part of a
// cursor, and of lists the index does not tell it.
func (c *chunk) jump() {
	if len(c.pages) == 0 || c.kind.MaxRep > 0 || c.row == 0 {
		return
	}
	i := c.pages.PageOf(c.row)
	if i <= 0 {
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

// appendMoves appends the moves that bring runs to address to. Moves that continue the one before them, on the drive and in
// memory, are joined with it.
func appendMoves(m []target.Move, runs []partition.Run, to uint64) []target.Move {
	for _, r := range runs {
		if k := len(m) - 1; k >= 0 && m[k].From+m[k].Len == r.From && m[k].To+m[k].Len == to {
			m[k].Len += r.Len
		} else {
			m = append(m, target.Move{From: r.From, Len: r.Len, To: to})
		}
		to += r.Len
	}
	return m
}

// unreadPlace names the row group and the columns of the slice that a block which could not be read holds bytes of: two
// where one ends in it. It is empty where that is not known.
func (w *worker) unreadPlace(err error) string {
	var u *target.UnreadBlockError
	if !errors.As(err, &u) || w.part.File == nil {
		return ""
	}
	var names []string
	group := 0
	for _, i := range w.seated {
		c := w.jobs[i].c
		lo, hi := w.geo.Cover(c.at, c.at+c.length)
		for _, m := range w.geo.AppendRuns(nil, lo, hi) {
			if m.From <= u.Device && u.Device-m.From < m.Len && !slices.Contains(names, w.nameOf(c)) {
				names, group = append(names, w.nameOf(c)), w.groupOf(c)
			}
		}
	}
	if names == nil {
		return ""
	}
	return fmt.Sprintf(": row group %d: column %s", group, strings.Join(names, " or "))
}
