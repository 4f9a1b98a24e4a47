package engine

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// writeLastRow writes the last row of a page of lists. A page may end inside a row. The row is complete where the
// next page begins with another row.
func (x *executor) writeLastRow(s *rowScan) error {
	last, err := x.readLastRow(s)
	if err != nil || s.lacking != program.Done {
		return err
	}
	written, err := x.writeBlock(s)
	if err != nil {
		return err
	}
	if written == 0 { // the output lacks room
		last.retreat(s)
		return nil
	}
	s.done++
	last.advance(s)
	return nil
}

// lastRow is where the last row of a page ends.
type lastRow struct {
	cursor   program.Cursor // behind the row
	unpacked page           // the page that lies unpacked in scratch
	nextOpen bool           // the decoder holds the page at cursor
}

// advance moves the cursor behind the row.
func (e *lastRow) advance(s *rowScan) { s.cursor, s.pageOpen = e.cursor, e.nextOpen }

// retreat leaves the cursor before the row.
func (e *lastRow) retreat(s *rowScan) { s.noteUnpacked(s.holdsUnpacked(&e.unpacked), &e.unpacked) }

// readLastRow decodes the last row of a page of lists into the block, including the row's values that lie in the
// following pages. The cursor stays at the row's beginning.
func (x *executor) readLastRow(s *rowScan) (end lastRow, err error) {
	x.block.Reset(s.columnType.Kind())
	x.block.Lend = false // the row may continue in a page that takes this page's memory
	if n, err := x.decoder.Next(&x.block, 1); err != nil {
		return end, s.atPage(&s.cursor, err)
	} else if n != 1 {
		return end, s.atPage(&s.cursor, pageError("a row is missing"))
	}
	at := s.cursor
	end.unpacked = x.page
	for {
		passPage(&at, &x.page)
		at.Skip = 0
		if s.chunkEnded(&at) {
			if at.Seen < s.task.Chunk.Values {
				return end, s.shortChunk(&at, 0)
			}
			break
		}
		ok, err := s.readHeader(&at, &x.page)
		if err != nil {
			return end, err
		}
		if !ok {
			s.setLacking(program.MoreInput, min(at.Page+max(headerEstimate, 2*s.bytesFrom(at.Page)),
				s.task.ChunkLen)-s.cursor.Page)
			end.retreat(s)
			return end, nil
		}
		if x.page.header.Type == format.DictionaryPage {
			return end, s.atPage(&at, pageError("a dictionary page behind the chunk's first page"))
		}
		if !x.page.holdsValues() {
			continue
		}
		if !x.page.header.MayContinue(&s.columnType) {
			break // the page begins with a row
		}
		ok, err = x.openPage(s, &at)
		if err != nil {
			return end, err
		}
		if !ok {
			end.retreat(s)
			return end, nil
		}
		if x.page.isPacked(&s.columnType) {
			end.unpacked = x.page
		}
		if x.decoder.Continues() {
			if err := x.decoder.Continue(&x.block); err != nil {
				return end, s.atPage(&at, err)
			}
		}
		if end.nextOpen = x.decoder.Rows() > 0; end.nextOpen {
			break
		}
	}
	end.cursor = at
	return end, nil
}

// holdsUnpacked reports whether scratch, the page that was unpacked last, is the page at the cursor.
func (s *rowScan) holdsUnpacked(scratch *page) bool {
	return scratch.offset == s.cursor.Page && scratch.isPacked(&s.columnType)
}
