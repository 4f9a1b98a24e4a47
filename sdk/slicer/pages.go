package slicer

import (
	"sort"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/partition"
)

// jumpToIndexedPage places a new chunk's cursor at the page of its row. Lists are walked instead: the number of
// values before a page is part of a cursor, and the page index of a list does not hold that number.
func (c *chunk) jumpToIndexedPage() {
	if len(c.pageIndex) == 0 || c.kind.MaxRep > 0 || c.row == 0 {
		return
	}
	i := c.pageIndex.PageOf(c.row)
	if i <= 0 {
		return
	}
	p := &c.pageIndex[i]
	c.pageRow = p.FirstRow
	c.cursor = program.Cursor{
		Page: uint64(p.Offset) - c.start, Skip: uint64(c.row - p.FirstRow), Seen: uint64(p.FirstRow),
		Ordinal: uint32(i),
	}
	if c.firstDataPage > 0 {
		c.cursor.Ordinal++ // the dictionary page, which is decoded before
	}
	c.dictionaryDecoded = c.dictionaryEncoded
}

// indexedPageAt returns the number of the page that begins at a chunk offset, the first page's for an offset before
// it, or -1 if the page index has none.
func (c *chunk) indexedPageAt(offset uint64) int { return c.pageIndex.Find(int64(c.start + offset)) }

// indexedBytes returns how many bytes from the cursor's page on hold count rows behind the cursor. ok is false if
// the page index does not say.
func (c *chunk) indexedBytes(count int64) (n uint64, ok bool) {
	i := c.indexedPageAt(c.cursor.Page)
	if i < 0 {
		return 0, false
	}
	end := c.pageIndex[i].FirstRow + int64(c.cursor.Skip) + count
	j := i + sort.Search(len(c.pageIndex)-i-1, func(k int) bool { return c.pageIndex[i+k+1].FirstRow >= end })
	if c.kind.MaxRep > 0 && j+1 < len(c.pageIndex) && c.pageIndex[j+1].FirstRow == end {
		j++ // only the next page says whether a list ends with its page
	}
	return uint64(c.pageIndex[j].Offset) + uint64(c.pageIndex[j].Size) - c.start - c.cursor.Page, true
}

// rowsLeftInPage returns how many rows of the cursor's page are left, 0 if that is not known.
func (c *chunk) rowsLeftInPage(learned *pageSizes) int64 {
	if i := c.indexedPageAt(c.cursor.Page); i >= 0 {
		return max(c.pageIndex.EndRow(i, c.rows)-c.pageIndex[i].FirstRow-int64(c.cursor.Skip), 0)
	}
	if c.cursor.Page < c.firstDataPage {
		return 0
	}
	return max(learned.pageRows-int64(c.cursor.Skip), 0)
}

// noteResumePoint remembers in the partition where the chunk stands.
func (c *chunk) noteResumePoint(p *partition.Partition, leaf int) {
	if c.resumeAt != nil || c.cursor.Page == 0 {
		return
	}
	at := partition.ResumePoint{Row: c.row, Cursor: c.cursor, PageRow: c.pageRow, HasDict: c.dictionaryDecoded}
	if begin := c.row - c.skippedRows(); begin > 0 {
		at.PageRow = begin
	}
	at.Cursor.Dict, at.Cursor.Unpacked, at.Cursor.Checked = false, false, false
	p.NoteResumePoint(c.group, leaf, at)
}

// noteWalkedPage remembers the first row of a page that a stream passed on the way to its row.
func (c *chunk) noteWalkedPage(p *partition.Partition, leaf int) {
	if c.cursor.Page == 0 || c.resumeAt != nil || c.cursor.Skip == 0 || int64(c.cursor.Skip) > c.row {
		return
	}
	begin := *c
	begin.row, begin.cursor.Skip = c.row-int64(c.cursor.Skip), 0
	begin.pageRow = begin.row
	begin.forgetValue()
	begin.noteResumePoint(p, leaf)
}

// findResumePoint places a new chunk's cursor at the last place known before its row.
func (c *chunk) findResumePoint(p *partition.Partition, leaf int) {
	at, ok := p.ResumePointBefore(c.group, leaf, c.row)
	if !ok || at.Cursor.Page <= c.cursor.Page {
		return
	}
	c.cursor, c.pageRow, c.dictionaryDecoded = at.Cursor, at.PageRow, at.HasDict
	if c.row > at.Row {
		c.cursor.Skip += uint64(c.row - at.Row)
		c.forgetValue()
	}
}

// forgetValue drops where the value of the cursor's row lies, when the cursor stands before another row of its page.
func (c *chunk) forgetValue() {
	if c.kind.MaxRep == 0 {
		c.cursor.ValueAt = 0
	}
}
